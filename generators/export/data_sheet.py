"""The data sheet of an export, which describes its folder."""

import inspect
import json
import shlex
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

from menagerie.envs.core.provenance import commit
from menagerie.envs.world import WORLDS
from menagerie.generators.export.formats import FORMATS
from menagerie.generators.storage.split_file import Split

SHEET = """\
# {name} as {form}

Rendered scenes of textured animals, each with a caption; where there is one, a hard negative (the same words, bound
differently) and the scene graphs of both. Made by Menagerie, a suite for the binding problem in vision-language models
(binding-menagerie {version}{commit}).
{sizes}
## Files

{files}

## Subsets

| subset | samples here | records of the split |
|---|---|---|
{subsets}

## Recipe

The split's, with the identity of its images `{identity}`:

```json
{recipe}
```

Made with

```
{command}
```

## Licence

The images and texts are under the Apache License 2.0 (https://www.apache.org/licenses/LICENSE-2.0).{own}
"""
OWN = "\nThis world is defined by its user: the meshes and pictures in it may have licences of their own."


def data_sheet(
    split: Split, form: str, out: Path, subsets: Sequence[str], counts: Mapping[str, tuple[int, int]]
) -> str:
    """The sheet as Markdown; its command names no parent folders, as the export may be shared."""
    call = ["menagerie", "export", split.path.name, "--format", form, "--out", out.absolute().name]
    return SHEET.format(
        name=split.path.name,
        form=form,
        sizes=f"\nThe animals come in sizes: {', '.join(sizes)}.\n" if (sizes := split.vocabulary.sizes) else "",
        version=version("binding-menagerie"),
        commit=f", commit {commit()}" if commit() else "",
        files=inspect.getdoc(FORMATS[form]),
        subsets="\n".join(f"| `{name}` | {samples} | {records} |" for name, (samples, records) in counts.items()),
        identity=split.identity,
        recipe=json.dumps(split.recipe, indent=1),
        command=shlex.join([*call, *(["--subsets", *subsets] if subsets else [])]),
        own="" if split.recipe["world"] in WORLDS else OWN,
    )
