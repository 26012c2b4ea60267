// A device named "imitation": its tensors lie in the memory of the CPU, and the CPU computes for it.
//
// As on a GPU, an operation that gets tensors of the device and tensors of the CPU is an error. Only numbers (tensors without
// dimensions) may come from the CPU. PyTorch calls such a device PrivateUse1:
// https://docs.pytorch.org/tutorials/advanced/privateuseone.html

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/view_native.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

namespace {

const c10::Device kDevice(c10::DeviceType::PrivateUse1, 0);

struct Memory final : at::Allocator {
  at::DataPtr allocate(size_t size) override {
    void* data = size ? ::operator new(size) : nullptr;
    return {data, data, &release, kDevice};
  }
  static void release(void* data) { ::operator delete(data); }
  at::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, size_t size) const override { std::memcpy(to, from, size); }
};

Memory memory;
REGISTER_ALLOCATOR(c10::DeviceType::PrivateUse1, &memory);

void resize_storage(const c10::Storage& storage, size_t size) {
  auto data = memory.allocate(size);
  const size_t kept = std::min(size, storage.nbytes());
  if (kept) std::memcpy(data.get(), storage.data(), kept);
  storage.unsafeGetStorageImpl()->set_data_ptr_noswap(std::move(data));
  storage.unsafeGetStorageImpl()->set_nbytes(size);
}

// One device with one stream, whose work is done at once.
struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kDevice.type(); }
  c10::Device exchangeDevice(c10::Device) const override { return kDevice; }
  c10::Device getDevice() const override { return kDevice; }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::Stream getStream(c10::Device) const override { return c10::Stream(c10::Stream::DEFAULT, kDevice); }
  c10::Stream getDefaultStream(c10::Device device) const override { return getStream(device); }
  c10::Stream exchangeStream(c10::Stream stream) const override { return stream; }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override {}
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

struct Hooks final : at::PrivateUse1HooksInterface {
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  bool isAvailable() const override { return true; }
  bool isPinnedPtr(const void*) const override { return false; }
  at::Device getDeviceFromPtr(void*) const override { return kDevice; }
  at::Allocator* getPinnedMemoryAllocator() const override { return c10::GetAllocator(c10::kCPU); }
  at::Generator getNewGenerator(c10::DeviceIndex) const override { return at::detail::createCPUGenerator(); }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override {
    return at::detail::getDefaultCPUGenerator();
  }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t size) const override {
    resize_storage(storage, size);
  }
};
const bool is_registered = [] {
  at::RegisterPrivateUse1HooksInterface(new Hooks());
  return true;
}();

// The same memory as a tensor of the CPU.
at::Tensor on_cpu(const at::Tensor& tensor) {
  if (!tensor.is_privateuseone()) return tensor;
  const auto storage = tensor.storage();
  const auto size = static_cast<int64_t>(storage.nbytes());
  const auto bytes = at::from_blob(const_cast<void*>(storage.data()), {size}, [storage](void*) {}, at::kByte);
  auto same = at::empty({0}, tensor.options().device(at::kCPU));
  return same.set_(bytes.storage(), tensor.storage_offset(), tensor.sizes(), tensor.strides());
}

using Type = std::optional<at::ScalarType>;
using Layout = std::optional<at::Layout>;
using Device = std::optional<at::Device>;
using Sizes = c10::SymIntArrayRef;
const c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

at::Tensor empty(c10::IntArrayRef sizes, Type type, Layout, Device, std::optional<bool>,
                 std::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(sizes, &memory, kKeys, c10::dtype_or_default(type), format);
}

at::Tensor empty_strided(c10::IntArrayRef sizes, c10::IntArrayRef strides, Type type, Layout, Device,
                         std::optional<bool>) {
  return at::detail::empty_strided_generic(sizes, strides, &memory, kKeys, c10::dtype_or_default(type));
}

std::atomic<int64_t> num_transfers = 0;  // copies between the device and the CPU, those of `compute` left out
thread_local bool is_computing = false;

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool) {
  num_transfers += from.device() != to.device() && !is_computing;
  on_cpu(to).copy_(on_cpu(from));
  return to;
}

at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to) {
  if (to.sizes() != from.sizes()) to.resize_(from.sizes());
  return copy_from(from, to, false);
}

const at::Tensor& resize(const at::Tensor& tensor, Sizes wanted, std::optional<at::MemoryFormat>) {
  const auto sizes = C10_AS_INTARRAYREF_SLOW(wanted);
  const size_t bytes = (c10::multiply_integers(sizes) + tensor.storage_offset()) * tensor.itemsize();
  if (bytes > tensor.storage().nbytes()) resize_storage(tensor.storage(), bytes);
  tensor.unsafeGetTensorImpl()->set_sizes_contiguous(sizes);
  return tensor;
}

at::Scalar read_number(const at::Tensor& tensor) { return on_cpu(tensor).item(); }

at::Tensor as_strided(const at::Tensor& tensor, Sizes sizes, Sizes strides, std::optional<c10::SymInt> offset) {
  const auto start = offset ? std::optional<int64_t>(offset->expect_int()) : std::nullopt;
  return at::native::as_strided_tensorimpl(tensor, C10_AS_INTARRAYREF_SLOW(sizes), C10_AS_INTARRAYREF_SLOW(strides), start);
}

at::Tensor view(const at::Tensor& tensor, Sizes sizes) {
  return at::native::view(tensor, C10_AS_INTARRAYREF_SLOW(sizes));
}

at::Tensor reshape_alias(const at::Tensor& tensor, Sizes sizes, Sizes strides) {
  return at::native::_reshape_alias(tensor, C10_AS_INTARRAYREF_SLOW(sizes), C10_AS_INTARRAYREF_SLOW(strides));
}

// Every other operation: check where its tensors lie, and let the CPU compute it.
void compute(const c10::OperatorHandle& operation, torch::jit::Stack* stack) {
  bool has_device = false, has_cpu = false;
  const auto look = [&](const at::Tensor& tensor) {
    if (!tensor.defined()) return;
    has_device |= tensor.is_privateuseone();
    has_cpu |= tensor.is_cpu() && tensor.dim() > 0;
  };
  for (const auto& argument : torch::jit::last(*stack, operation.schema().arguments().size())) {
    if (argument.isTensor()) look(argument.toTensor());
    if (argument.isTensorList())
      for (const auto& tensor : argument.toTensorVector()) look(tensor);
    if (argument.isOptionalTensorList())
      for (const auto& tensor : argument.toOptionalTensorVector())
        if (tensor) look(*tensor);
  }
  TORCH_CHECK(!(has_device && has_cpu), operation.schema().name(), ": tensors of the device and of the CPU");
  const bool was_computing = std::exchange(is_computing, true);
  at::native::cpu_fallback(operation, stack);
  is_computing = was_computing;
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", empty);
  m.impl("empty_strided", empty_strided);
  m.impl("_copy_from", copy_from);
  m.impl("_copy_from_and_resize", copy_from_and_resize);
  m.impl("resize_", resize);
  m.impl("_local_scalar_dense", read_number);
  m.impl("as_strided", as_strided);
  m.impl("view", view);
  m.impl("_reshape_alias", reshape_alias);
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&compute>()); }

namespace at::autocast {  // its header takes longer to compile than all else here
TORCH_API Tensor cached_cast(ScalarType, const Tensor&, DeviceType);
TORCH_API ScalarType get_autocast_dtype(DeviceType);
}

namespace {

// Compute with all tensors of one type.
void cast_and_compute(at::ScalarType type, const c10::OperatorHandle& operation, torch::jit::Stack* stack) {
  const c10::impl::ExcludeDispatchKeyGuard without_autocast(c10::DispatchKey::AutocastPrivateUse1);
  for (auto argument = stack->end() - operation.schema().arguments().size(); argument != stack->end(); ++argument)
    if (argument->isTensor()) *argument = at::autocast::cached_cast(type, argument->toTensor(), kDevice.type());
  operation.callBoxed(stack);
}

void lower(const c10::OperatorHandle& operation, torch::jit::Stack* stack) {
  cast_and_compute(at::autocast::get_autocast_dtype(kDevice.type()), operation, stack);
}

void fp32(const c10::OperatorHandle& operation, torch::jit::Stack* stack) {
  cast_and_compute(at::kFloat, operation, stack);
}

}  // namespace

// What autocast computes in the lower precision, and what in float32.
TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
  for (const auto name : {"linear", "matmul", "bmm", "baddbmm", "scaled_dot_product_attention"})
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&lower>());
  for (const auto name : {"softmax.int", "log_softmax.int", "layer_norm"})
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&fp32>());
}

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) { m.fallback(torch::CppFunction::makeFallthrough()); }

extern "C" int64_t transfers() { return num_transfers; }
