// Any bytes as a kubeconfig, as the answer of a credential plugin and as the URLs of a server and
// its proxy: an error or values.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "kube/config.h"
#include "kube/exec_plugin.h"
#include "kube/proxy.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(data, data + size);
  const kube::Environment environment = {{"HTTPS_PROXY", text}, {"NO_PROXY", text}};
  for (const kube::Caller caller : {kube::Caller::kPerson, kube::Caller::kDaemon}) {
    const auto config = kube::ParseKubeconfig(text, "/", "", caller, environment);
    if (!config.ok()) continue;
    if (caller == kube::Caller::kDaemon && config->exec) std::abort();
    if (!kube::ParseUrl(config->server).ok()) std::abort();
  }
  if (const auto url = kube::ParseUrl(text); url.ok()) kube::ProxyFor(*url, environment);
  (void)kube::ParsePluginAnswer(text, "client.authentication.k8s.io/v1");
  return 0;
}
