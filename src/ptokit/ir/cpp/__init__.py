"""From a module to C++: kernels with the vendor's intrinsics, and the wrappers that launch them."""

from ptokit.ir.cpp.files import to_cpp

__all__ = ["to_cpp"]
