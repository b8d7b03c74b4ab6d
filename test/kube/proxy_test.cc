#include "kube/proxy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/status.h"

namespace kube {
namespace {

using test::StatusIs;
using testing::HasSubstr;
using testing::Not;

std::string Proxy(const std::string& server, const std::string& no_proxy) {
  return ProxyFor(ParseUrl(server).value(),
                  {{"HTTPS_PROXY", "http://proxy:3128"}, {"NO_PROXY", no_proxy}});
}
bool Direct(const std::string& server, const std::string& no_proxy) {
  return Proxy(server, no_proxy).empty();
}

TEST(ProxyFor, IsTheSchemesVariableInEitherCase) {
  const Url https = ParseUrl("https://api.example:6443").value();
  const Url http = ParseUrl("http://api.example").value();
  EXPECT_EQ(ProxyFor(https, {{"HTTPS_PROXY", "http://a:1"}, {"https_proxy", "http://b:1"}}),
            "http://a:1");
  EXPECT_EQ(ProxyFor(https, {{"https_proxy", "b:1"}}), "http://b:1");
  EXPECT_EQ(ProxyFor(https, {{"HTTP_PROXY", "http://a:1"}}), "");
  EXPECT_EQ(ProxyFor(http, {{"HTTP_PROXY", "http://a:1"}}), "http://a:1");
  EXPECT_EQ(ProxyFor(https, {}), "");
}

TEST(ProxyFor, LeavesOutTheNetworksOfNoProxyForAnAddress) {
  const std::string server = "https://10.96.0.1:443";
  EXPECT_TRUE(Direct(server, "10.96.0.0/12"));
  EXPECT_TRUE(Direct(server, "example.com, 10.96.0.1"));
  EXPECT_TRUE(Direct(server, "10.96.0.1:443"));
  EXPECT_TRUE(Direct(server, "0.0.0.0/0"));
  EXPECT_FALSE(Direct(server, "10.96.0.1:6443"));
  EXPECT_FALSE(Direct(server, "10.112.0.0/12"));
  EXPECT_FALSE(Direct(server, "10.96.0.0/33"));
  EXPECT_FALSE(Direct(server, "10.96.0"));
  EXPECT_TRUE(Direct("https://[fd00:1::5]:6443", "fd00:1::/32"));
  EXPECT_TRUE(Direct("https://[fd00:1::5]:6443", "[fd00:1::5]:6443"));
  EXPECT_FALSE(Direct("https://[fd00:2::5]:6443", "fd00:1::/32"));
  EXPECT_FALSE(Direct("https://10.96.0.1", "fd00:1::/32"));
}

TEST(ProxyFor, LeavesOutTheNamesOfNoProxyAndWhatIsBelowThem) {
  EXPECT_TRUE(Direct("https://api.corp.example", "corp.example"));
  EXPECT_TRUE(Direct("https://corp.example", "corp.example"));
  EXPECT_TRUE(Direct("https://API.corp.example", ".Corp.Example"));
  EXPECT_TRUE(Direct("https://api.corp.example", "*.corp.example"));
  EXPECT_TRUE(Direct("https://api.corp.example:6443", "corp.example:6443"));
  EXPECT_FALSE(Direct("https://corp.example", ".corp.example"));
  EXPECT_FALSE(Direct("https://notcorp.example", "corp.example"));
  EXPECT_FALSE(Direct("https://api.corp.example:443", "corp.example:6443"));
  EXPECT_TRUE(Direct("https://api.corp.example", "a, *"));
}

TEST(ProxyFor, IsNoneForTheHostItself) {
  EXPECT_TRUE(Direct("https://localhost:6443", ""));
  EXPECT_TRUE(Direct("https://127.0.0.9:6443", ""));
  EXPECT_TRUE(Direct("https://[::1]:6443", ""));
  EXPECT_FALSE(Direct("https://128.0.0.1:6443", ""));
}

TEST(ParseUrl, TakesItApart) {
  const Url url = ParseUrl("HTTPS://me:s%40t@[fd00::1]:6443/k8s/clusters/c/").value();
  EXPECT_EQ(url.scheme, "https");
  EXPECT_EQ(url.user_info, "me:s@t");
  EXPECT_EQ(url.address, (HostPort{"fd00::1", "6443"}));
  EXPECT_EQ(url.path, "/k8s/clusters/c");
  EXPECT_EQ(ParseUrl("http://a").value().address.port, "80");
  EXPECT_EQ(ParseUrl("https://a").value().address.port, "443");
}

TEST(ParseUrl, RefusesOthersWithoutShowingAPassword) {
  for (const char* text : {"", "host:6443", "https://", "https://h:0", "https://h:70000",
                           "https://h ost", "https://:443", "https://u:%zz@h"}) {
    EXPECT_THAT(ParseUrl(text), Not(test::IsOk())) << text;
  }
  EXPECT_THAT(ParseUrl("https://me:secret@h:port"),
              StatusIs(absl::StatusCode::kInvalidArgument, Not(HasSubstr("secret"))));
}

}  // namespace
}  // namespace kube
