"""The page of the study of diversity: accuracy by coverage and supervision, robustness, and what two papers claim."""

from collections.abc import Iterator, Mapping
from typing import Any

from menagerie.envs.worlds import load_world
from menagerie.generators.coverage import round_coverage
from menagerie.studies.analysis.words import one_line
from menagerie.studies.frame.claims import claims_section, outcomes_sentence
from menagerie.studies.frame.estimate import Estimate, estimate_or_dash
from menagerie.studies.frame.parts import Heading, HeatMap, Lines, Paragraph, Part, Rows, Sentence, Table
from menagerie.studies.frame.records import Records
from menagerie.studies.measures.recognition import ANIMAL, COMPOSITION, NAME
from menagerie.studies.measures.robustness import contrast, effective_robustness, gain, group_accuracy
from menagerie.studies.pages.diversity_claims import CAPTIONS, CLASSES, SEEN, UNSEEN, DiversityClaims, is_square


class DiversityPage(DiversityClaims):
    """The page of a study, from the runs that are finished."""

    def parts(self) -> Iterator[Part]:
        """Yield sentences, the figure, robustness, claims, and the other numbers as tables."""
        words = {"coverage": {share: f"{share:.0%}" for share in self.coverages}}
        words |= {"subset": {test: f"{kind} compositions" for kind, tests in self.tests.items() for test in tests}}
        if not len(self.objects.scores):
            yield Paragraph("Nothing is measured yet: recognition is measured once all runs have ended.")
            yield from self.tasks(self.records, words)
            return
        verdicts = list(self.verdicts())
        yield from self.answer()
        if verdicts:
            yield Sentence(outcomes_sentence(verdicts, "two papers"))
        shown = self.main.where(task=(ANIMAL, COMPOSITION), subset=sum(self.tests.values(), ()))
        in_percent = {task: 100 * self.chance(self.study.world, task) for task in (ANIMAL, NAME, COMPOSITION)}
        looks: dict[str, Any] = {"colour": "supervision", "stroke": "subset", "panels": ("task",)}
        yield Lines("diversity", shown, x="coverage", **looks, chances=in_percent, words=words, says=one_line(SAYS))
        yield Heading("Robustness", one_line(ROBUSTNESS))
        yield Rows("robustness", ROBUSTNESS_COLUMNS, list(self.robustness()))
        yield from claims_section(verdicts, "difference in points", one_line(CLAIMS))
        yield Heading("What training showed", one_line(INFORMATION))
        yield Rows("information", ("coverage", "textures of an animal", "NMI", self.captions), list(self.information()))
        yield from self.tables(words)

    def tables(self, words: Mapping[str, Mapping[Any, str]]) -> Iterator[Part]:
        """Yield tables by numbers of animals and textures, by numbers of images, and of all tasks."""
        square = [world for world in dict.fromkeys((*self.study.worlds, self.study.world)) if is_square(world)]
        grid = self.objects.where(world=tuple(square), images=self.study.train_scenes, supervision=self.captions)
        if grid.arms:
            yield Heading("n animals and n textures, each in k combinations", one_line(GRID))
            for kind, task in ((UNSEEN, ANIMAL), (UNSEEN, COMPOSITION)):
                found = grid.where(subset=self.tests[kind], task=task)
                name, panels = f"grid-{task.replace(' ', '-')}", ("task", "supervision")
                yield HeatMap(name, found, x="combinations", y="values", panels=panels)
        if self.study.more_scenes:
            yield Heading("More images of the same compositions")
            same = self.objects.where(world=self.study.world, coverage=min(self.coverages), supervision=self.captions)
            yield Table("images", same, ("images",), ("subset", "task"), intervals=True, words=words)
        yield Heading("All numbers", one_line(TASKS))
        yield Table(
            "recognition", self.main, ("supervision", "coverage"), ("subset", "task"), intervals=True, words=words
        )
        yield from self.tasks(self.records.where(world=self.study.world, images=self.study.train_scenes), words)

    def tasks(self, records: Records, words: Mapping[str, Mapping[Any, str]]) -> Iterator[Part]:
        """Yield a table of all tasks of the split, for models trained on captions with textures."""
        named = records.where(lambda arm: str(arm.labels["supervision"]).startswith(CAPTIONS))
        named = named.where(subset=sum(self.tests.values(), ()))
        if len(named.scores):
            rows = ("supervision", "coverage", "world", "images")
            yield Table("tasks", named, rows, ("subset", "task"), words=words, says=one_line(SWAPS))

    def answer(self) -> Iterator[Part]:
        """Yield a sentence for each supervision on animals, and one on compositions, with accuracy at the least and the
        greatest coverage; then one on the number of images."""
        ends = list(dict.fromkeys((min(self.coverages), max(self.coverages))))
        unseen = self.main.where(subset=self.tests[UNSEEN])
        for task, names in ((ANIMAL, self.names), (COMPOSITION, [self.captions])):
            found = unseen.where(task=task).estimates(("supervision", "coverage"))
            for name in names:
                said = [f"{found[name, at]} at {at:.0%} coverage" for at in ends if (name, at) in found]
                if said:
                    yield Sentence(
                        f"Trained on {name}, accuracy on {task} in unseen compositions (%, chance "
                        f"{100 * self.chance(self.study.world, task):.1f}): {', '.join(said)}."
                    )

        yield from self.of_images()

    def of_images(self) -> Iterator[Part]:
        """Yield a sentence on the gain from more images of the same compositions, and from more compositions."""
        least, images = self.coverages[0], max(self.study.more_scenes, default=0)
        base = self.points(COMPOSITION, coverage=least)
        more = contrast([base, self.points(COMPOSITION, coverage=least, images=images)], gain, signed=True)
        if images and more:
            few = self.study.train_scenes
            said = f"{images} images in place of {few} at {least:.0%} coverage {more}"
            if len(self.coverages) > 1:
                wider = contrast([base, self.points(COMPOSITION, coverage=self.coverages[1])], gain, signed=True)
                said += f"; {self.coverages[1]:.0%} coverage in place of {least:.0%} with {few} images "
                said += estimate_or_dash(wider)
            yield Sentence(f"Points gained on {COMPOSITION} in unseen compositions: {said}.")

    def robustness(self) -> Iterator[tuple[str, ...]]:
        """Yield a row for each supervision and coverage: accuracy on animals, effective and relative robustness."""
        base = {kind: self.curve(CLASSES, kind) for kind in (SEEN, UNSEEN)}
        for name in self.names:
            own = {kind: self.curve(name, kind) for kind in (SEEN, UNSEEN)}
            for k, share in enumerate(self.coverages):
                levels = [group_accuracy(own[kind][k]) for kind in (SEEN, UNSEEN)]
                gaps: list[Estimate | None] = [None, None]
                if name != CLASSES:
                    one = [own[SEEN][k], own[UNSEEN][k]]
                    gaps[0] = contrast([*one, *base[SEEN], *base[UNSEEN]], effective_robustness(1), signed=True)
                    gaps[1] = contrast([base[UNSEEN][k], own[UNSEEN][k]], gain, signed=True)
                yield name, f"{share:.0%}", *map(estimate_or_dash, (*levels, *gaps))

    def information(self) -> Iterator[tuple[str, ...]]:
        """Yield a row for each coverage: textures of an animal, NMI, and accuracy on unseen compositions."""
        textures = len(load_world(self.study.world).textures)
        for share in self.coverages:
            number = round_coverage(share, self.study.classes) / self.study.classes
            its = group_accuracy(self.points(COMPOSITION, coverage=share))
            yield f"{share:.0%}", f"{number * textures:.3g}", f"{self.nmi(share):.3f}", estimate_or_dash(its)


ROBUSTNESS_COLUMNS = ("supervision", "coverage", SEEN, UNSEEN, "effective robustness", "relative robustness")
SAYS = """Accuracy (%) by coverage: the share of all combinations of animal and texture that training showed, in equally
many images and steps. The images of unseen compositions are the same at every coverage and for every supervision. An
object of an image is right if its class scores above all classes that the image doesn't show. Classes are all animals,
or all animals in all textures. Models trained on captions of animals alone, or on classes, can't name a texture.
Dotted: chance."""
ROBUSTNESS = """Accuracy (%) on animals in new images of seen and of unseen compositions. Relative robustness: points
above classes on unseen compositions at the same coverage. Effective robustness: points above what the accuracy on seen
compositions predicts, by a line through the classifiers of all coverages, in log-odds (both are defined by Taori et
al. 2020, section 2). The line has a point for each coverage, and says little where these differ little on seen
compositions; intervals include its uncertainty. Both compare only the seeds that all their runs have."""
CLAIMS = """In brackets the interval. The papers' numbers are of other images, models and sizes: images of one object,
with CLIP models trained on up to billions of pairs (Abbasi et al.); images of one object whose factors are classified
(Uselis et al.). A difference is over the seeds that all its runs have. Our images show several objects, and the number
of steps is fixed: training may end before curves are flat."""
INFORMATION = """Normalised mutual information of animals and textures in the captions of training: 0 if an animal says
nothing about its texture, 1 if it determines it (`menagerie nmi FILE` measures it in any captions). Coverage determines
it here, so this study can't separate their effects. On the right: accuracy (%) on animals and textures of unseen
compositions."""
GRID = """Accuracy (%) on unseen compositions of worlds of n animals and n textures, of which training shows each animal
in k textures (values: n, combinations: k), always in as many images: the setting of Uselis et al. Chance falls with
n."""
TASKS = f"""{ANIMAL}: one of all animals, by captions of the kind that training had (with textures: the mean over all
textures). {NAME}: by captions without textures, which training never had. {COMPOSITION}: one of all animals in all
textures."""
SWAPS = (
    """All tasks of the split on seen and on unseen compositions (%), of models trained on captions with textures."""
)
