// Runs a compiled program for Python without Python: whoever calls these functions through ctypes
// has let the interpreter go, so that other threads work on while a forecast is computed.
//
// Tensors come and go as pointers to at::Tensor on the heap, as torch's own bindings hand them out.
// A failure returns null and leaves its words in `words`.

#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

#include <cstdio>
#include <exception>
#include <memory>
#include <vector>

using Program = torch::inductor::AOTIModelPackageLoader;

extern "C" {

void* rancast_program_load(const char* path, char* words, size_t room) {
  try {
    return new Program(path);
  } catch (const std::exception& error) {
    std::snprintf(words, room, "%s", error.what());
    return nullptr;
  }
}

void rancast_program_free(void* program) { delete static_cast<Program*>(program); }

// Takes the inputs over; the one output belongs to the caller.
void* rancast_program_run(void* program, void** inputs, size_t count, char* words, size_t room) {
  try {
    std::vector<std::unique_ptr<at::Tensor>> taken;
    taken.reserve(count);
    for (size_t index = 0; index < count; ++index) {
      taken.emplace_back(static_cast<at::Tensor*>(inputs[index]));
    }
    std::vector<at::Tensor> tensors;
    for (const auto& each : taken) tensors.push_back(*each);
    c10::InferenceMode guard;
    auto outputs = static_cast<Program*>(program)->boxed_run(std::move(tensors));
    return new at::Tensor(outputs.at(0));
  } catch (const std::exception& error) {
    std::snprintf(words, room, "%s", error.what());
    return nullptr;
  }
}
}
