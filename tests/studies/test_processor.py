"""Runs record a processor by what decides how it sums, not by a name that several have."""

import pytest

from menagerie.studies.runs.machine import describe_processor, processor

CLOUD = "processor\t: 0\ncpu family\t: 25\nmodel\t\t: {}\nmodel name\t: Some CPU\nflags\t\t: fpu {}\n\nprocessor\t: 1\n"


@pytest.mark.parametrize(
    ("cpuinfo", "text"),
    [
        (CLOUD.format(1, "avx avx2"), "Some CPU, family 25, model 1, avx2"),
        (CLOUD.format(17, "avx avx2 avx512f"), "Some CPU, family 25, model 17, avx512f"),
        ("model name : Some CPU\n", "Some CPU"),
        ("processor : 0\nCPU implementer : 0x41\n", ""),
        ("", ""),
    ],
    ids=["older", "newer", "name alone", "no name", "nothing"],
)
def test_processors_of_one_name_differ(cpuinfo, text):
    assert describe_processor(cpuinfo) == text


def test_this_processor_has_a_name():
    assert processor()
