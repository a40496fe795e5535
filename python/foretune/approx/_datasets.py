"""Images and labels in raw files, as PredTuner keeps them."""

from __future__ import annotations

import os
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from .._errors import (CorruptDataError, InputOutputError, InvalidArgumentError, MismatchError,
                       NotFoundError)
from ._torch_import import torch_or_none

__all__ = ["CIFAR", "MNIST", "ImageNet", "accuracy"]

Path = str | os.PathLike[str]
Made = TypeVar("Made", bound="_Dataset")


def _mapped(path: Path, dtype: str, items: int, entry: str) -> npt.NDArray[Any]:
    """Maps a file of numbers, `items` of which make an entry, and returns the entries."""
    name = os.fspath(path)
    try:
        size = os.path.getsize(name)
        width = np.dtype(dtype).itemsize * items
        if size % width != 0:
            raise CorruptDataError(f"{name} has {size} bytes, which are not a multiple of the "
                                   f"{width} bytes of {entry}")
        # An empty file cannot be mapped.
        if size == 0:
            return np.empty((0, items), dtype)
        return np.memmap(name, dtype=dtype, mode="r").reshape(-1, items)
    except FileNotFoundError as failure:
        raise NotFoundError(f"there is no file {name}") from failure
    except OSError as failure:
        raise InputOutputError(f"{name} cannot be read: {failure.strerror}") from failure


class _Dataset:
    """Images with labels, kept as NumPy arrays.

    A data set has a length and an index, which is all that ``torch.utils.data.DataLoader`` wants.
    ``dataset[i]`` is a pair of an image (channels, rows, columns) of float32 and its label, an
    int64; slices give pairs of several. They are tensors where PyTorch is installed, else arrays.

    Args:
        images: (count, channels, rows, columns), kept without a copy when of float32.
        labels: (count,), whole numbers.

    Attributes:
        image_shape: (channels, rows, columns) of the class's images.
        images: (count, channels, rows, columns), float32; read from the file where they are used
            when ``from_file`` made the data set.
        labels: (count,), int64.

    Raises:
        InvalidArgumentError: the arrays have other shapes.

    Thread safety: constant.
    """

    image_shape: ClassVar[tuple[int, int, int]]

    def __init__(self, images: npt.ArrayLike, labels: npt.ArrayLike) -> None:
        self.images: npt.NDArray[np.float32] = np.asarray(images, dtype=np.float32)
        given = np.asarray(labels)
        if self.images.shape[1:] != self.image_shape:
            raise InvalidArgumentError(f"images of {type(self).__name__} have the shape "
                                       f"{self.image_shape}, not {self.images.shape[1:]}")
        if given.dtype.kind not in "iu" or given.shape != self.images.shape[:1]:
            raise InvalidArgumentError(f"{len(self.images)} images need as many whole numbers as "
                                       f"labels, not {given.dtype} of the shape {given.shape}")
        self.labels: npt.NDArray[np.int64] = given.astype(np.int64)

    @classmethod
    def from_file(cls: type[Made], input_file: Path, labels_file: Path, count: int = -1,
                  offset: int = 0) -> Made:
        """Opens images and labels in two raw files without a header.

        Args:
            input_file: images one after the other, each float32 (channels, rows, columns) in the
                machine's byte order. The file is mapped, not copied into memory.
            labels_file: one int32 for each image.
            count: images to take; -1: all. A larger number than there are takes all.
            offset: images to leave out at the beginning.

        Raises:
            NotFoundError, InputOutputError: a file cannot be read.
            CorruptDataError: a file's length is not a whole number of images or labels.
            MismatchError: the files have different numbers of images and labels.
            InvalidArgumentError: the count or the offset makes no sense.
        """
        if count < -1:
            raise InvalidArgumentError(f"count is -1 for all or a number of images, not {count}")
        items = int(np.prod(cls.image_shape))
        images = _mapped(input_file, "f4", items, "an image")
        labels = _mapped(labels_file, "i4", 1, "a label")
        if len(images) != len(labels):
            raise MismatchError(f"{os.fspath(input_file)} has {len(images)} images and "
                                f"{os.fspath(labels_file)} has {len(labels)} labels")
        if offset < 0 or offset > len(images):
            raise InvalidArgumentError(f"the offset {offset} is not among {len(images)} images")
        chosen = slice(offset, len(images) if count == -1 else offset + count)
        return cls(images[chosen].reshape(-1, *cls.image_shape), labels[chosen].reshape(-1))

    @property
    def sample_input(self) -> Any:
        """Returns the first image, as ``dataset[0]`` gives it."""
        return self[0][0]

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: Any) -> tuple[Any, Any]:
        # A copy: tensors may be written to, the file may not.
        image, label = np.array(self.images[index]), self.labels[index]
        torch = torch_or_none()
        if torch is None:
            return image, label
        return torch.from_numpy(image), torch.as_tensor(label)


class MNIST(_Dataset):
    __doc__ = _Dataset.__doc__
    image_shape = (1, 28, 28)


class CIFAR(_Dataset):
    __doc__ = _Dataset.__doc__
    image_shape = (3, 32, 32)


class ImageNet(_Dataset):
    __doc__ = _Dataset.__doc__
    image_shape = (3, 224, 224)


def _as_array(value: Any) -> npt.NDArray[Any]:
    """Returns a tensor of torch on any device, or something like an array, as an array."""
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    return np.asarray(value)


def accuracy(output: Any, target: Any) -> float:
    """Returns the share of rows whose largest number is at the label, in percent (0 to 100).

    Args:
        output: (images, classes), a tensor of PyTorch or a NumPy array. The first of equal numbers
            is the largest.
        target: (images,), labels; the same.

    Raises:
        InvalidArgumentError: the shapes do not fit, or there is no image.

    Thread safety: any number of threads.
    """
    rows, labels = _as_array(output), _as_array(target)
    if rows.ndim != 2 or labels.shape != rows.shape[:1] or rows.size == 0:
        raise InvalidArgumentError("accuracy takes (images, classes) and (images,), not "
                                   f"{rows.shape} and {labels.shape}")
    return float(100.0 * np.mean(rows.argmax(axis=1) == labels))
