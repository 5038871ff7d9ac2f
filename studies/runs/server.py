"""The process that training, rendering and checks are forked from: what it loads, and in which environment."""

import os

from menagerie.envs.core.processes import serve

# glibc gives large blocks back to the system after every step and takes page faults for new ones; workers keep them, in
# huge pages where the system has them. It reads this when a process starts.
MALLOC = {
    "MALLOC_MMAP_THRESHOLD_": 32 << 20,
    "MALLOC_TRIM_THRESHOLD_": 1 << 30,
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
}
# What takes long to load and every run of a study needs.
MODULES = (
    "menagerie.envs.render.renderer",
    "menagerie.models.contract",
    "menagerie.models.evaluation.scoring",
    "menagerie.models.training.feed",
    "menagerie.models.training.loop",
    "menagerie.models.training.loop",
    "menagerie.studies.runs.train",
)


def start_server(threads: int) -> None:
    """Start it, for runs with that many threads each."""
    for name, size in MALLOC.items():
        os.environ.setdefault(name, str(size))
    os.environ["OMP_NUM_THREADS"] = str(threads)  # read when numpy and torch are loaded
    serve(MODULES)
