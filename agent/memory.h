#pragma once

// What keeps the process small. The agent is on every node, and what it has resident is not there
// for pods.
namespace agent {

// By itself glibc keeps twice the largest block that was ever given back, in an arena for each
// thread: of an agent with 5 MiB in use that makes 16. To be called before there is any other
// thread.
void KeepLittleFreeMemory();

// Gives back the pages of the program and its libraries; those that are needed are mapped again
// one by one, from the page cache. Most have been needed once, to start: TLS, gRPC and hwloc set
// themselves up, symbols are bound. Safe while other threads run.
void GiveBackFilePages();

}  // namespace agent
