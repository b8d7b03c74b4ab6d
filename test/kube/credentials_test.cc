#include "kube/credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "kube/base64.h"
#include "test/fakes/clock.h"
#include "test/support/files.h"
#include "test/support/status.h"
#include "test/support/temp_tree.h"

namespace kube {
namespace {

using test::StatusIs;
using testing::AllOf;
using testing::HasSubstr;

constexpr auto kUnauthenticated = absl::StatusCode::kUnauthenticated;

TEST(Credentials, HaveTheTokenOfTheFileAsItIsNow) {
  test::TempTree tree;
  test::FakeClock clock;
  tree.Put("token", "first\n");
  Credentials credentials({.token = "unused", .token_file = tree.Path("token")}, clock);
  EXPECT_EQ(credentials.Read().value().token, "first");
  tree.Put("token", "second");
  EXPECT_EQ(credentials.Read().value().token, "second");
}

TEST(Credentials, HaveTheCertificateOfTheFileAsItIsNow) {
  test::TempTree tree;
  test::FakeClock clock;
  tree.Put("c", "first");
  Credentials credentials(
      {.client_certificate = {.file = tree.Path("c")}, .client_key = {.text = "key"}}, clock);
  EXPECT_EQ(credentials.Read().value(), (Credential{"", "first", "key"}));
  tree.Put("c", "second");
  EXPECT_EQ(credentials.Read().value().certificate_pem, "second");
}

TEST(Credentials, NameTheFileThatIsMissingOrEmptyOrNoToken) {
  test::TempTree tree;
  test::FakeClock clock;
  Credentials credentials({.token_file = tree.Path("token")}, clock);
  EXPECT_THAT(credentials.Read(),
              StatusIs(kUnauthenticated, HasSubstr(tree.Path("token") + ": no such file")));
  tree.Put("token", " \n");
  EXPECT_THAT(credentials.Read(), StatusIs(kUnauthenticated, HasSubstr("is empty")));
  tree.Put("token", "a\r\nX-Header: b");
  EXPECT_THAT(credentials.Read(), StatusIs(kUnauthenticated, HasSubstr("characters")));
}

// A program that prints `output` and counts how often it ran.
class Plugin {
 public:
  explicit Plugin(const std::string& script) {
    tree_.Put("plugin", "#!/bin/sh\necho ran >> " + tree_.Path("runs") + "\n" + script);
    chmod(tree_.Path("plugin").c_str(), 0755);
  }
  Config config() const {
    return {.server = "https://a:1",
            .exec = ExecPlugin{.api_version = "client.authentication.k8s.io/v1",
                               .command = tree_.Path("plugin"),
                               .arguments = {"one two"},
                               .environment = {{"SECRET", "s3"}},
                               .install_hint = "get it at the shop"}};
  }
  std::size_t runs() const { return test::Lines(test::Slurp(tree_.Path("runs"))).size(); }

 private:
  test::TempTree tree_;
};

std::string Printing(const std::string& status) {
  return R"(echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":)" +
         status + "}'\n";
}

TEST(Credentials, AskAPluginOnceUntilItsAnswerExpires) {
  const Plugin plugin(Printing(R"({"token":"t","expirationTimestamp":"2025-12-18T00:01:00Z"})"));
  test::FakeClock clock;
  clock.Sleep(*base::ParseTime("2025-12-18T00:00:00Z") - clock.Now());
  Credentials credentials(plugin.config(), clock);
  EXPECT_EQ(credentials.Read().value().token, "t");
  EXPECT_EQ(credentials.Read().value().token, "t");
  EXPECT_EQ(plugin.runs(), 1U);
  clock.Sleep(std::chrono::seconds(55));
  ASSERT_OK(credentials.Read());
  EXPECT_EQ(plugin.runs(), 2U);
}

TEST(Credentials, AskAPluginAgainWhenTheServerRefused) {
  const Plugin plugin(Printing(R"({"clientCertificateData":"C","clientKeyData":"K"})"));
  test::FakeClock clock;
  Credentials credentials(plugin.config(), clock);
  EXPECT_EQ(credentials.Read().value(), (Credential{"", "C", "K"}));
  credentials.Refused();
  ASSERT_OK(credentials.Read());
  EXPECT_EQ(plugin.runs(), 2U);
}

TEST(RunPlugin, GivesItArgumentsVariablesAndTheClustersPlace) {
  const Plugin plugin(
      R"sh(printf '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential",)sh"
      R"sh("status":{"token":"%s"}}' "$1-$SECRET-$(printf %s "$KUBERNETES_EXEC_INFO" | base64 -w0)")sh");
  Config config = plugin.config();
  config.exec->provide_cluster_info = true;
  config.certificate_authority.text = "PEM";
  ASSERT_OK_AND_ASSIGN(const PluginAnswer answer, RunPlugin(config));
  ASSERT_THAT(answer.token, testing::StartsWith("one two-s3-"));
  EXPECT_THAT(DecodeBase64(answer.token.substr(11)).value(),
              AllOf(HasSubstr(R"("kind":"ExecCredential")"), HasSubstr(R"("server":"https://a:1")"),
                    HasSubstr(R"("certificate-authority-data":"UEVN")")));
}

TEST(RunPlugin, SaysWhatWentWrong) {
  const auto fails_with = [](const std::string& script) {
    return RunPlugin(Plugin(script).config()).status();
  };
  EXPECT_THAT(fails_with("exit 3\n"),
              StatusIs(kUnauthenticated, AllOf(HasSubstr("failed with exit status 3"),
                                               HasSubstr("get it at the shop"))));
  EXPECT_THAT(fails_with("kill -9 $$\n"), StatusIs(kUnauthenticated, HasSubstr("signal 9")));
  EXPECT_THAT(fails_with("echo hello\n"), StatusIs(kUnauthenticated, HasSubstr("no JSON")));
  EXPECT_THAT(fails_with("yes\n"), StatusIs(kUnauthenticated, HasSubstr("over 1 MiB")));
  EXPECT_THAT(fails_with(Printing("{}")), StatusIs(kUnauthenticated, HasSubstr("neither")));
  EXPECT_THAT(fails_with(Printing(R"({"clientKeyData":"K"})")),
              StatusIs(kUnauthenticated, HasSubstr("a key alone")));
  Config absent = Plugin("").config();
  absent.exec->command = "/nowhere/plugin";
  EXPECT_THAT(RunPlugin(absent), StatusIs(kUnauthenticated, HasSubstr("cannot be run: No such")));
}

TEST(ParsePluginAnswer, IsOfTheVersionThatWasAskedFor) {
  const std::string answer =
      R"({"apiVersion":"client.authentication.k8s.io/v1beta1","kind":"ExecCredential",)"
      R"("status":{"token":"t"}})";
  EXPECT_OK(ParsePluginAnswer(answer, "client.authentication.k8s.io/v1beta1"));
  EXPECT_THAT(ParsePluginAnswer(answer, "client.authentication.k8s.io/v1"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("v1beta1")));
}

TEST(Base64, IsTheStandards) {
  for (const char* text : {"", "a", "ab", "abc", "abcd", "\xff\xfe\x01"}) {
    EXPECT_EQ(DecodeBase64(EncodeBase64(text)), text);
  }
  EXPECT_EQ(EncodeBase64("ab"), "YWI=");
  EXPECT_EQ(DecodeBase64("Y\nWI=\r\n"), "ab");
  for (const char* text : {"YWI", "YW=I", "Y===", "YWI-", "===="}) {
    EXPECT_EQ(DecodeBase64(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace kube
