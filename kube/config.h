#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kube/proxy.h"

// Where the API server is and who we are to it.
namespace kube {

// PEM text, or the file that holds it, which is read at each new connection because it rotates.
struct Pem {
  std::string text = {};
  std::string file = {};
  bool empty() const { return text.empty() && file.empty(); }
  bool operator==(const Pem&) const = default;
};

// A program that prints a credential (client.authentication.k8s.io).
struct ExecPlugin {
  std::string api_version = {};
  std::string command = {};  // a name to be found in PATH, or a path
  std::vector<std::string> arguments = {};
  std::map<std::string, std::string> environment = {};  // on top of our own
  bool always_interactive = false;                      // it wants a terminal
  bool provide_cluster_info = false;
  std::string install_hint = {};
  bool operator==(const ExecPlugin&) const = default;
};

struct Config {
  std::string server = {};           // https://host:port, or http:// where no credential is sent
  std::string tls_server_name = {};  // the name in the server's certificate, if not the host's
  Pem certificate_authority = {};    // empty: the system's
  bool insecure_skip_tls_verify = false;
  Pem client_certificate = {};
  Pem client_key = {};
  std::string token = {};
  std::string token_file = {};  // wins over `token`; read at each request, because it rotates
  std::optional<ExecPlugin> exec = {};
  std::string proxy_url = {};          // "" for none
  std::string default_namespace = {};  // "" if nothing says one
  bool operator==(const Config&) const = default;
};

// As a pod sees it: KUBERNETES_SERVICE_HOST and _PORT, and in `folder`
// (/var/run/secrets/kubernetes.io/serviceaccount) the files token, ca.crt and namespace. NotFound:
// the variables are not set, so this is no pod; FailedPrecondition: a file is missing.
absl::StatusOr<Config> InClusterConfig(const Environment& environment, const std::string& folder);

// Who is behind the program. A daemon runs no program to get a credential, and takes no server
// whose certificate it cannot verify; a person at a terminal may have chosen both.
enum class Caller { kPerson, kDaemon };

// The files of KUBECONFIG (what is named first wins, as with kubectl), and the context in them: the
// one of that name, or with "" the current one. Relative paths start at the file that has them.
// Errors name the file and the field. NotFound: there is no such file. FailedPrecondition: what
// it asks for is not done: auth-provider, basic authentication, impersonation, for a daemon exec.
absl::StatusOr<Config> LoadKubeconfig(const std::vector<std::string>& files,
                                      const std::string& context, Caller caller,
                                      const Environment& environment);
// KUBECONFIG's files, else ~/.kube/config.
std::vector<std::string> KubeconfigFiles(const Environment& environment);

// One file's text, as LoadKubeconfig does it with a single file in `folder`.
absl::StatusOr<Config> ParseKubeconfig(const std::string& text, const std::string& folder,
                                       const std::string& context, Caller caller,
                                       const Environment& environment);

// The text or the file's content; "" if neither is there. InvalidArgument: the file is empty, which
// is not the same: then nobody would be trusted, or we would be nobody.
absl::StatusOr<std::string> ReadPem(const Pem& pem);
// A file of credentials, at most 1 MiB.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path);

}  // namespace kube
