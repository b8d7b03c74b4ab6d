#include "kube/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "test/support/status.h"
#include "test/support/temp_tree.h"

namespace kube {
namespace {

using test::StatusIs;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kNotDone = absl::StatusCode::kFailedPrecondition;

const Environment kInPod = {{"KUBERNETES_SERVICE_HOST", "10.96.0.1"},
                            {"KUBERNETES_SERVICE_PORT", "443"}};

test::TempTree& WithServiceAccount(test::TempTree& tree) {
  return tree.Put("token", "t\n").Put("ca.crt", "PEM").Put("namespace", "plumbline\n");
}

TEST(InClusterConfig, IsTheServiceAccountsFolder) {
  test::TempTree tree;
  WithServiceAccount(tree);
  ASSERT_OK_AND_ASSIGN(const Config config, InClusterConfig(kInPod, tree.root()));
  EXPECT_EQ(config, (Config{.server = "https://10.96.0.1:443",
                            .certificate_authority = {.file = tree.Path("ca.crt")},
                            .token_file = tree.Path("token"),
                            .default_namespace = "plumbline"}));
}

TEST(InClusterConfig, PutsBracketsAroundIpv6) {
  test::TempTree tree;
  WithServiceAccount(tree);
  Environment environment = kInPod;
  environment["KUBERNETES_SERVICE_HOST"] = "fd00::1";
  EXPECT_EQ(InClusterConfig(environment, tree.root()).value().server, "https://[fd00::1]:443");
}

TEST(InClusterConfig, GoesByAProxyUnlessNoProxyHasTheServicesNetwork) {
  test::TempTree tree;
  WithServiceAccount(tree);
  Environment environment = kInPod;
  environment["HTTPS_PROXY"] = "http://proxy:3128";
  EXPECT_EQ(InClusterConfig(environment, tree.root()).value().proxy_url, "http://proxy:3128");
  environment["NO_PROXY"] = ".svc,10.96.0.0/12";
  EXPECT_EQ(InClusterConfig(environment, tree.root()).value().proxy_url, "");
}

TEST(InClusterConfig, TellsNoPodFromAPodWithoutItsToken) {
  test::TempTree tree;
  EXPECT_THAT(InClusterConfig({}, tree.root()),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("this is no pod")));
  tree.Put("ca.crt", "PEM");
  EXPECT_THAT(InClusterConfig(kInPod, tree.root()),
              StatusIs(kNotDone, HasSubstr(tree.Path("token") + ": no such file")));
}

constexpr const char* kClusters = R"(
apiVersion: v1
kind: Config
current-context: here
contexts:
- {name: here, context: {cluster: c, user: u, namespace: ml}}
- {name: there, context: {cluster: c2, user: u}}
clusters:
- {name: c, cluster: {server: "https://10.0.0.1:6443", certificate-authority: pki/ca.crt}}
- name: c2
  cluster:
    server: https://api.example:6443/prefix
    certificate-authority-data: UEVN
    tls-server-name: kubernetes
    proxy-url: http://proxy:3128
users:
)";

absl::StatusOr<Config> Parse(const std::string& text, const std::string& context = "",
                             Caller caller = Caller::kDaemon) {
  return ParseKubeconfig(text, "/etc/kube", context, caller, {});
}
absl::StatusOr<Config> ParseUser(const std::string& user, Caller caller = Caller::kDaemon) {
  return Parse(kClusters + ("- {name: u, user: " + user + "}\n"), "", caller);
}

TEST(ParseKubeconfig, TakesTheCurrentContext) {
  ASSERT_OK_AND_ASSIGN(const Config config, ParseUser("{token: abc}"));
  EXPECT_EQ(config, (Config{.server = "https://10.0.0.1:6443",
                            .certificate_authority = {.file = "/etc/kube/pki/ca.crt"},
                            .token = "abc",
                            .default_namespace = "ml"}));
}

TEST(ParseKubeconfig, TakesANamedContextWithAllFields) {
  ASSERT_OK_AND_ASSIGN(
      const Config config,
      Parse(std::string(kClusters) + "- {name: u, user: {client-certificate: /a/c.pem, "
                                     "client-key-data: UEVN, tokenFile: t}}\n",
            "there"));
  EXPECT_EQ(config, (Config{.server = "https://api.example:6443/prefix",
                            .tls_server_name = "kubernetes",
                            .certificate_authority = {.text = "PEM"},
                            .client_certificate = {.file = "/a/c.pem"},
                            .client_key = {.text = "PEM"},
                            .token_file = "/etc/kube/t",
                            .proxy_url = "http://proxy:3128"}));
}

TEST(ParseKubeconfig, LetsAPersonRunACredentialPlugin) {
  const std::string user =
      "{exec: {apiVersion: client.authentication.k8s.io/v1, command: ./bin/login, args: [a, b], "
      "env: [{name: X, value: z}], interactiveMode: Always, provideClusterInfo: true, "
      "installHint: get it}}";
  ASSERT_OK_AND_ASSIGN(const Config config, ParseUser(user, Caller::kPerson));
  EXPECT_EQ(config.exec, (ExecPlugin{.api_version = "client.authentication.k8s.io/v1",
                                     .command = "/etc/kube/./bin/login",
                                     .arguments = {"a", "b"},
                                     .environment = {{"X", "z"}},
                                     .always_interactive = true,
                                     .provide_cluster_info = true,
                                     .install_hint = "get it"}));
}

TEST(ParseKubeconfig, RefusesADaemonToRunOne) {
  EXPECT_THAT(ParseUser("{exec: {apiVersion: client.authentication.k8s.io/v1, command: login}}"),
              StatusIs(kNotDone, AllOf(HasSubstr("users[0].user.exec is not supported"),
                                       HasSubstr("a daemon runs no program"))));
}

TEST(ParseKubeconfig, RefusesADaemonToTrustAnyServer) {
  std::string text(kClusters);
  text.replace(text.find("certificate-authority: pki/ca.crt"), 33,
               "insecure-skip-tls-verify: true");
  text += "- {name: u, user: {token: abc}}\n";
  EXPECT_THAT(Parse(text), StatusIs(kNotDone, HasSubstr("insecure-skip-tls-verify")));
  EXPECT_TRUE(Parse(text, "", Caller::kPerson).value().insecure_skip_tls_verify);
}

TEST(ParseKubeconfig, RefusesWhatItDoesNotDo) {
  for (const char* user :
       {"{auth-provider: {name: gcp}}", "{username: a, password: b}", "{token: t, as: admin}",
        "{exec: {apiVersion: client.authentication.k8s.io/v1alpha1, command: x}}"}) {
    EXPECT_THAT(ParseUser(user, Caller::kPerson).status().code(), kNotDone) << user;
  }
}

TEST(ParseKubeconfig, NamesWhatIsWrong) {
  EXPECT_THAT(Parse(""), StatusIs(kInvalid, HasSubstr("current-context is not set")));
  EXPECT_THAT(Parse("current-context: x"), StatusIs(kInvalid, "there is no context \"x\""));
  EXPECT_THAT(Parse(kClusters), StatusIs(kInvalid, "there is no user \"u\""));
  EXPECT_THAT(ParseUser("{client-certificate: a}"),
              StatusIs(kInvalid, HasSubstr("one is missing")));
  EXPECT_THAT(ParseUser("{client-key-data: '*'}"),
              StatusIs(kInvalid, "users[0].user.client-key-data: is no base64"));
  EXPECT_THAT(ParseUser("{token: [1]}"), StatusIs(kInvalid, "users[0].user.token: is no string"));
  EXPECT_THAT(Parse("a: [1"), StatusIs(kInvalid, HasSubstr("line")));
  EXPECT_THAT(Parse("clusters: {}\ncontexts: 5\ncurrent-context: x"),
              StatusIs(kInvalid, "contexts: is no list"));
}

TEST(ParseKubeconfig, NeedsNoUser) {  // a server behind kubectl proxy lets in everybody
  ASSERT_OK_AND_ASSIGN(const Config config,
                       Parse("current-context: x\n"
                             "contexts: [{name: x, context: {cluster: c}}]\n"
                             "clusters: [{name: c, cluster: {server: 'http://localhost:8001'}}]"));
  EXPECT_EQ(config, Config{.server = "http://localhost:8001"});
}

TEST(LoadKubeconfig, TakesTheFirstFileThatHasAName) {
  test::TempTree tree;
  tree.Put("a", "current-context: here\nusers: [{name: u, user: {tokenFile: t}}]");
  tree.Put("below/b", std::string(kClusters) + "- {name: u, user: {token: other}}\n");
  ASSERT_OK_AND_ASSIGN(const Config config,
                       LoadKubeconfig({tree.Path("a"), tree.Path("absent"), tree.Path("below/b")},
                                      "", Caller::kDaemon, {}));
  EXPECT_EQ(config.token_file, tree.Path("t"));
  EXPECT_EQ(config.certificate_authority.file, tree.Path("below/pki/ca.crt"));
}

TEST(LoadKubeconfig, NamesTheFile) {
  test::TempTree tree;
  tree.Put("a", "x: [");
  EXPECT_THAT(LoadKubeconfig({tree.Path("a")}, "", Caller::kDaemon, {}),
              StatusIs(kInvalid, HasSubstr(tree.Path("a") + ": ")));
  EXPECT_THAT(LoadKubeconfig({tree.Path("b")}, "", Caller::kDaemon, {}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(tree.Path("b"))));
  EXPECT_THAT(LoadKubeconfig({tree.root()}, "", Caller::kDaemon, {}),
              StatusIs(kInvalid, HasSubstr("is no file")));
}

// It is read for each request.
TEST(ReadSmallFile, DoesNotTakeAMebibyteForATokenOfAFewBytes) {
  test::TempTree tree;
  tree.Put("token", "abc");
  const auto pages_touched = [] {
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_minflt;
  };
  ASSERT_OK(ReadSmallFile(tree.Path("token")));
  const long before = pages_touched();
  EXPECT_EQ(ReadSmallFile(tree.Path("token")).value(), "abc");
  EXPECT_LT(pages_touched() - before, 128);  // half a mebibyte
}

TEST(ReadSmallFile, ReadsUpToAMebibyte) {
  test::TempTree tree;
  const std::string most(std::size_t{1} << 20, 'x');
  tree.Put("most", most).Put("more", most + "x").Put("none", "");
  EXPECT_EQ(ReadSmallFile(tree.Path("most")).value(), most);
  EXPECT_EQ(ReadSmallFile(tree.Path("none")).value(), "");
  EXPECT_THAT(ReadSmallFile(tree.Path("more")), StatusIs(absl::StatusCode::kResourceExhausted,
                                                         HasSubstr("more is larger than 1 MiB")));
}

TEST(KubeconfigFiles, AreTheVariablesOrTheHomesOne) {
  EXPECT_THAT(KubeconfigFiles({{"KUBECONFIG", "/a::/b:"}, {"HOME", "/h"}}),
              ElementsAre("/a", "/b"));
  EXPECT_THAT(KubeconfigFiles({{"HOME", "/h"}}), ElementsAre("/h/.kube/config"));
}

}  // namespace
}  // namespace kube
