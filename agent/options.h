#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

// The command line: what it may say, in one place. docs/agent.md is the reference.
namespace agent {

enum class OutputFormat { kText, kYaml, kJson, kNrt, kPlacement };
enum class ColorChoice { kAuto, kAlways, kNever };

// What the agent does about a NodeResourceTopology that somebody else writes as well.
enum class NrtMode {
  kAuto,    // leaves it to the other
  kAlways,  // takes it over
  kNever    // writes none
};

// How and where a node is published.
struct PublishOptions {
  std::optional<std::string> kubeconfig;  // nullopt: as a pod of the cluster
  std::string name_space;                 // of the Lease; "": the pod's
  std::chrono::milliseconds poll_interval{1000};
  NrtMode nrt = NrtMode::kAuto;
  bool kai_annotation = false;
  std::optional<int> metrics_port;  // nullopt: nothing is served; 0: a free one
  std::string metrics_address;      // "": all of the host's
  std::string tls_certificate;      // PEM files, both or none
  std::string tls_key;
};

struct Options {
  bool dry_run = false;
  PublishOptions publish;
  OutputFormat output = OutputFormat::kText;
  std::string root = "/";
  bool root_given = false;
  std::optional<std::string> topology_xml;
  std::optional<std::string> podresources;      // a socket or a file of recorded replies
  std::optional<std::string> kubelet_config;    // below the root
  std::string node_name;                        // never empty
  std::vector<std::string> excluded_resources;  // from NodeResourceTopology
  std::string log_level;
  bool ascii = false;
  bool color = false;
  int width = 80;
};

// What main found around it, so that nothing here asks the process.
struct Environment {
  std::string node_name;  // NODE_NAME
  std::string host_name;
  std::string locale;     // the one of LC_ALL, LC_CTYPE, LANG that counts
  bool no_color = false;  // NO_COLOR is set and not empty, or the terminal is dumb
  bool is_terminal = false;
  int columns = 0;  // of the terminal; 0 if it is none
};

// Either options to work with, or what to print and the exit code to leave with.
struct CommandLine {
  std::optional<Options> options;
  int exit_code = 0;
  std::string out;
  std::string err;
};

CommandLine ParseCommandLine(const std::vector<std::string>& arguments,
                             const Environment& environment);

inline constexpr int kMinWidth = 60;
inline constexpr int kMaxWidth = 1000;

// Exit codes.
inline constexpr int kExitOk = 0;
inline constexpr int kExitPassing = 1;     // somebody does not answer; try again
inline constexpr int kExitWrongInput = 2;  // trying again does not help

}  // namespace agent
