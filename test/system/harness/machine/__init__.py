"""Made-up NUMA machines, written as trees of sys/ and proc/ that programs read as a real machine."""

from .catalogue import MACHINES
from .cpus import Cpu
from .machine import Advertised, Machine
from .numa import NumaNode
from .pci import PciDevice

__all__ = ["MACHINES", "Advertised", "Cpu", "Machine", "NumaNode", "PciDevice"]
