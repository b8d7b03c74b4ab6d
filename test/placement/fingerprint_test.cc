#include "placement/fingerprint.h"

#include <gtest/gtest.h>

namespace placement {
namespace {

// Computed with the community's library and again with an independent XXH64. Its own vector of 259
// pods is left out: it lives in a file of that project.
TEST(Fingerprint, AgreesWithTheCommunitysVectors) {
  EXPECT_EQ(PodFingerprint({}), "pfp0v001ef46db3751d8e999");
  EXPECT_EQ(PodFingerprint({{"default", "a"}}), "pfp0v00173ac1f6debaedf3d");
  EXPECT_EQ(PodFingerprint({{"default", "pod-0"}}), "pfp0v0014b86611ae68e2f40");
  EXPECT_EQ(PodFingerprint({{"", ""}}), "pfp0v001c47d32effa0690e8");
  EXPECT_EQ(PodFingerprint({{"kube-system", "kube-proxy-abcde"},
                            {"gpu-operator", "nvidia-device-plugin-daemonset-xyz12"},
                            {"ml", "trainer-0"}}),
            "pfp0v0010bd399c7e1134081");
  EXPECT_EQ(PodFingerprint({{"a-namespace-of-more-than-thirty-two-characters-long",
                             "a-pod-name-with-more-than-thirty-two-bytes-7d9c5b6f4-abcde"}}),
            "pfp0v0010fa89b45838cf8be");
  EXPECT_EQ(
      PodFingerprint({{"ns1", "n1"}, {"ns1", "n2"}, {"ns2", "n1"}, {"ns3", "n1"}, {"ns3", "n2"}}),
      "pfp0v001b92008c14168b3a6");
}

TEST(Fingerprint, DoesNotDependOnTheOrderOfPods) {
  EXPECT_EQ(PodFingerprint({{"default", "pod-0"}, {"default", "pod-1"}}),
            "pfp0v0017152c31aceaba58f");
  EXPECT_EQ(PodFingerprint({{"default", "pod-1"}, {"default", "pod-0"}}),
            "pfp0v0017152c31aceaba58f");
}

TEST(Fingerprint, CountsARepeatedPodTwice) {
  EXPECT_EQ(PodFingerprint({{"default", "pod-0"}, {"default", "pod-0"}}),
            "pfp0v001614e413003f28b68");
}

}  // namespace
}  // namespace placement
