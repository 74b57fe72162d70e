"""Files of other programs, by the end of their names: what they are, and how their weights come here."""

from pathlib import PurePath

_TORCH = "save its weights: safetensors.torch.save_file(model.state_dict(), 'model.safetensors')"
_ARRAYS = "save its weights as arrays: numpy.savez('model.npz', name=array, …)"

OTHERS = {
    ".onnx": ("an ONNX model", _ARRAYS),
    ".tflite": ("a TensorFlow Lite model", _ARRAYS),
    ".pb": ("a TensorFlow graph", _ARRAYS),
    ".h5": ("a Keras model", _ARRAYS),
    ".keras": ("a Keras model", _ARRAYS),
    ".pt": ("PyTorch's pickle", _TORCH),
    ".pth": ("PyTorch's pickle", _TORCH),
    ".ckpt": ("a checkpoint of training", _TORCH),
    ".bin": ("no format that tells what it is", _TORCH),
    ".mlmodel": ("a Core ML model", _ARRAYS),
}
WEIGHTS = (".oinf", ".safetensors", ".gguf", ".npz")


def described(name: str) -> tuple[str, str] | None:
    """What a file is that is not read, by its name, and how its weights are; None for other names."""
    return OTHERS.get(PurePath(name).suffix.lower())
