#pragma once

#include <rapidcheck.h>

#include "placement/node_placement.h"
#include "test/placement/scene.h"

// Generators of any values for property tests.
namespace placement {

// All members set to anything that the object's fields can say.
rc::Gen<NodePlacement> AnyPlacement();

// A small node whose parts agree: pods on random free CPUs, memory blocks and devices, some of them
// gone from the kubelet's list but not from its state files.
rc::Gen<Scene> AnyScene();

}  // namespace placement
