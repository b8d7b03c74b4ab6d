// fake-kubelet: answers podresources questions from a file, for trying Plumbline without a kubelet.
#include <fmt/format.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>

#include "base/file_tree.h"
#include "base/status_macros.h"
#include "demo/fake_kubelet.h"

namespace {

absl::StatusOr<std::string> ReadWhole(const std::string& path) {
  ASSIGN_OR_RETURN(const base::FileTree root, base::FileTree::Open("/"));
  return root.Read(path, std::int64_t{64} << 20);
}

int Serve(const std::string& socket, const std::string& answers) {
  // Blocked before gRPC starts its threads, so that it is this one that is told to stop.
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTERM);
  sigaddset(&stop, SIGINT);
  pthread_sigmask(SIG_BLOCK, &stop, nullptr);

  demo::FakeKubelet kubelet(
      socket, [path = std::filesystem::absolute(answers).string()] { return ReadWhole(path); });
  if (const absl::Status started = kubelet.Start(); !started.ok()) {
    fmt::print(stderr, "fake-kubelet: {}\n", std::string(started.message()));
    return 1;
  }
  fmt::print("fake-kubelet: {} answers from {}\n", socket, answers);
  std::fflush(stdout);
  int signal = 0;
  sigwait(&stop, &signal);
  return 0;
}

int Run(int argc, char** argv) {
  std::string socket;
  std::string answers;
  CLI::App app{
      "Answers the kubelet's podresources calls on a unix socket, with the replies in a file that "
      "is read at each call: edit it and ask again. Ends on SIGTERM or SIGINT."};
  app.add_option("--socket", socket, "unix socket to listen on; an old one there is replaced")
      ->required();
  app.add_option("--answers", answers,
                 "JSON file: {\"list\": ..., \"allocatable\": ...}, each as grpcurl prints it")
      ->required()
      ->check(CLI::ExistingFile);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return Serve(socket, answers);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return Run(argc, argv);
  } catch (const std::exception& error) {
    std::fputs(error.what(), stderr);
    return 1;
  }
}
