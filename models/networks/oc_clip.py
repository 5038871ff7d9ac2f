"""OC-CLIP: object-centric binding in contrastive language-image pre-training.

It follows section 3, equations 1-3, table 11 and figure 9. The paper's sizes are the defaults of `OCCLIPConfig`; small
towers take narrower ones. In the binding module text queries compete for image patches (section 3.1, figure 9); the
structured similarity compares visual slots with a scene graph (section 3.2).
"""

from functools import partial
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn

from menagerie.models.networks.graph_batch import GraphBatch, GraphReader
from menagerie.models.objectives import Targets, contrastive_loss, local_relation_loss
from menagerie.models.scorer import Scorer, Sharing
from menagerie.models.scorers.oc_clip import ALTERED, OCCLIPConfig
from menagerie.models.texts import by_images, fits_in_memory
from menagerie.models.towers.build import build_towers
from menagerie.models.towers.config import TextSpace, TowerConfig
from menagerie.models.towers.features import Layer, TextRows
from menagerie.models.towers.towers import self_attention

# Avoids division by zero for a query that gets no share of any patch (figure 9). Rounds to zero in half precision.
EPSILON = 1e-8


class BindingModule(nn.Module):
    """Maps patches to keys and values, phrases to queries, and queries and patches to visual slots.

    The default sizes and layers are table 11's. Table 11 also normalises the queries and figure 9 doesn't;
    `config.query_norm` decides.
    """

    def __init__(self, patch_width: int, n_patches: int, config: OCCLIPConfig) -> None:
        super().__init__()
        self.dim = dim = config.dim
        self.patch_mlp = nn.Sequential(nn.Linear(patch_width, dim), nn.GELU(), nn.Linear(dim, dim))
        self.positions = nn.Parameter(config.position_scale * torch.randn(n_patches, dim))
        self.self_attention = self_attention(dim, config.heads, config.layers, mlp_ratio=2.0)
        self.to_keys_values = nn.Linear(dim, 2 * dim)
        self.key_norm = nn.LayerNorm(dim)
        self.value_norm = nn.LayerNorm(dim)
        self.query_norm = nn.LayerNorm(dim) if config.query_norm else nn.Identity()
        self.default_tokens = nn.Parameter(torch.randn(config.default_tokens, dim))
        self.to_query = nn.Linear(dim, dim, bias=False)
        self.to_key = nn.Linear(dim, dim, bias=False)
        self.to_value = nn.Linear(dim, dim, bias=False)

    def encode_patches(
        self, patches: Float[Tensor, "n p width"]
    ) -> tuple[Float[Tensor, "n p d"], Float[Tensor, "n p d"]]:
        """Keys and values of every patch; independent of any text."""
        x = self.self_attention(self.patch_mlp(patches) + self.positions)
        keys, values = self.to_keys_values(x).split(self.dim, dim=-1)
        return self.to_key(self.key_norm(keys)), self.to_value(self.value_norm(values))

    def phrase_logits(
        self, phrases: Float[Tensor, "u d"], keys: Float[Tensor, "n p d"]
    ) -> tuple[Float[Tensor, "n u p"], Float[Tensor, "n default p"]]:
        """Scaled dot products of all phrases, and of the default tokens, with all patches."""
        logits = torch.einsum("qd,npd->nqp", self.queries(phrases), keys)
        return logits[:, : len(phrases)], logits[:, len(phrases) :]

    def own_logits(
        self, phrases: Float[Tensor, "u d"], nodes: Int64[Tensor, "n m"], keys: Float[Tensor, "n p d"]
    ) -> tuple[Float[Tensor, "n m p"], Float[Tensor, "n default p"]]:
        """Scaled dot products of each image's own phrases, by number, and of default tokens, with its patches."""
        queries = self.queries(phrases)
        own, default = queries[nodes], queries[len(phrases) :]
        return own @ keys.transpose(1, 2), torch.einsum("qd,npd->nqp", default, keys)

    def queries(self, phrases: Float[Tensor, "u d"]) -> Float[Tensor, "q d"]:
        """The scaled queries of phrases, then those of the default tokens."""
        return self.to_query(self.query_norm(torch.cat([phrases, self.default_tokens]))) * self.dim**-0.5


def full_precision(tensor: Float[Tensor, "*b"]) -> Float[Tensor, "*b"]:
    """Convert a tensor to float32; float64 stays. Half precision would lose `EPSILON` and small shares."""
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


def competitive_attention(
    logits: Float[Tensor, "... m p"], present: Bool[Tensor, "... m #p"], default_logits: Float[Tensor, "... default p"]
) -> Float[Tensor, "... m p"]:
    """Softmax over the queries of a text and the default tokens (OC-CLIP, equation 1).

    The default tokens' shares aren't returned, so the shares of a patch sum to at most one. Absent (padding) queries
    get none.
    """
    logits = full_precision(logits).masked_fill(~present, -torch.inf)
    # All default tokens together are one competitor, with the sum of their exponentials.
    rest = torch.logsumexp(full_precision(default_logits), dim=-2, keepdim=True)
    return torch.cat([logits, rest.expand(*logits.shape[:-2], 1, logits.shape[-1])], dim=-2).softmax(-2)[..., :-1, :]


def regular_attention(logits: Float[Tensor, "... m p"], present: Bool[Tensor, "... m #p"]) -> Float[Tensor, "... m p"]:
    """Softmax over the patches, for each query by itself; absent queries get zeros."""
    return full_precision(logits).softmax(-1) * present


def focused_attention(
    logits: Float[Tensor, "... m p"], present: Bool[Tensor, "... m #p"], default_logits: Float[Tensor, "... default p"]
) -> Float[Tensor, "... m p"]:
    """Regular attention of each query, with every patch weighted by the query's share of it in the competition.

    Among the patches that a query wins, those similar to it count most. So no query absorbs objects that the text
    doesn't name; in the competition alone, the closest phrase absorbs them. A present query's weights sum to one over
    the patches. Ours, not the paper's.
    """
    logits, default_logits = full_precision(logits), full_precision(default_logits)
    rest = torch.logsumexp(default_logits, dim=-2, keepdim=True)
    whole = torch.cat([logits.masked_fill(~present, -torch.inf), rest.expand(*logits.shape[:-2], 1, -1)], dim=-2)
    shares = logits - torch.logsumexp(whole, dim=-2, keepdim=True)
    return (logits + shares).softmax(-1) * present


def visual_slots(attention: Float[Tensor, "n *b m p"], values: Float[Tensor, "n p d"]) -> Float[Tensor, "n *b m d"]:
    """Means of an image's values, weighted by each query's shares of the patches (figure 9)."""
    weights = attention + EPSILON
    weights = weights / weights.sum(-1, keepdim=True)
    # One product per image: broadcasting `values` over texts would copy them for each text.
    slots = weights.flatten(1, -2) @ full_precision(values)
    return slots.unflatten(1, attention.shape[1:-1])


class RelationScorer(nn.Module):
    """Scores a relation between two slots: cosine(r, f_s([r, S_s]) + f_o([r, S_o])) with two-layer MLPs (equation 3,
    table 11)."""

    def __init__(self, relation_dim: int, slot_dim: int) -> None:
        super().__init__()
        self.subject = relation_mlp(relation_dim, slot_dim)
        self.object = relation_mlp(relation_dim, slot_dim)

    def forward(
        self, relation: Float[Tensor, "*b r"], subject: Float[Tensor, "*b d"], object_: Float[Tensor, "*b d"]
    ) -> Float[Tensor, "*b"]:
        """Score two slots as subject and object of the relation, between -1 and 1."""
        predicted = self.subject(torch.cat([relation, subject], -1)) + self.object(torch.cat([relation, object_], -1))
        return F.cosine_similarity(relation, predicted, dim=-1)


class JointRelationScorer(nn.Module):
    """Scores a relation of two slots by one MLP: cosine(r, f([r, S_s, S_o])), "+ MLP relation" of table 7."""

    def __init__(self, relation_dim: int, slot_dim: int) -> None:
        super().__init__()
        self.both = relation_mlp(relation_dim, 2 * slot_dim)

    def forward(
        self, relation: Float[Tensor, "*b r"], subject: Float[Tensor, "*b d"], object_: Float[Tensor, "*b d"]
    ) -> Float[Tensor, "*b"]:
        """Score two slots as subject and object of the relation, between -1 and 1."""
        return F.cosine_similarity(relation, self.both(torch.cat([relation, subject, object_], -1)), dim=-1)


RELATION_SCORERS: dict[str, type[nn.Module]] = {"additive": RelationScorer, "joint": JointRelationScorer}


def relation_mlp(relation_dim: int, slot_dim: int) -> nn.Sequential:
    """Make an MLP from a relation and `slot_dim` numbers of slots to a vector of the relation's width."""
    return nn.Sequential(
        nn.Linear(relation_dim + slot_dim, relation_dim), nn.GELU(), nn.Linear(relation_dim, relation_dim)
    )


def structured_similarity(
    objects: Float[Tensor, "*b m"],
    node_present: Bool[Tensor, "*#b m"],
    relations: Float[Tensor, "*b e"],
    edge_present: Bool[Tensor, "*#b e"],
    alpha: Float[Tensor, ""],
    beta: Float[Tensor, ""],
) -> Float[Tensor, "*b"]:
    """The score of a graph: (alpha sum_nodes + beta sum_edges) / (alpha M + beta P)  (equation 2).

    If no graph of the batch has edges, alpha cancels exactly and is left out, because its gradient by the full formula
    would be rounding noise, which Adam scales up to full steps.
    """
    nodes = (objects * node_present).sum(-1)
    n_nodes = node_present.sum(-1)
    if relations.shape[-1] == 0:
        return nodes / n_nodes
    edges = (relations * edge_present).sum(-1)
    return (alpha * nodes + beta * edges) / (alpha * n_nodes + beta * edge_present.sum(-1))


class ImageEmbedding(NamedTuple):
    """Keys and values of every patch."""

    keys: Float[Tensor, "n p d"]
    values: Float[Tensor, "n p d"]


class TextEmbedding(NamedTuple):
    """The distinct phrases and predicates, encoded, and the graphs that refer to them."""

    phrases: Float[Tensor, "u d"]
    predicates: Float[Tensor, "v r"]
    graphs: GraphBatch


class OCCLIPScorer(Scorer):
    """The scorer OC-CLIP: binds phrases of a scene graph to image patches, and compares each with its slot."""

    capabilities = frozenset({"attention"})
    config_class = OCCLIPConfig
    sharing = Sharing("tower")

    def __init__(self, towers: TowerConfig, texts: TextSpace, config: OCCLIPConfig) -> None:
        super().__init__(towers, texts, config.logit_scale)
        self.config = config
        built = build_towers(towers, texts)
        patch_width, n_patches = built.patch_sizes("oc-clip")
        self.take_towers(built)
        self.reader = GraphReader(built.tokenizer, built.context)
        text_width = built.text.projection.shape[1]
        self.binding = BindingModule(patch_width, n_patches, config)
        self.to_node = nn.Linear(text_width, config.dim)
        self.to_predicate = nn.Linear(text_width, config.relation_dim)
        self.relation = RELATION_SCORERS[config.relation](config.relation_dim, config.dim)
        self.alpha = nn.Parameter(torch.tensor(config.alpha))
        self.beta = nn.Parameter(torch.tensor(config.beta))

    def encode_images(self, pixels: Float[Tensor, "n 3 h w"]) -> ImageEmbedding:
        """Keys and values of every patch."""
        return ImageEmbedding(*self.binding.encode_patches(self.towers.image.patches(pixels)))

    def encode_texts(self, texts: GraphBatch) -> TextEmbedding:
        """Encode each distinct phrase and predicate once."""
        phrases = self.to_node(self.towers.text.pool(texts.phrases))
        predicates = phrases.new_zeros(0, self.config.relation_dim)
        if len(texts.predicates):
            predicates = self.to_predicate(self.towers.text.pool(texts.predicates))
        return TextEmbedding(phrases, predicates, texts)

    def similarity(self, images: ImageEmbedding, texts: TextEmbedding) -> Float[Tensor, "n m"]:
        """The score of every image with every text (equation 2); equal graphs are compared once."""
        once = texts._replace(graphs=texts.graphs.once())
        scores = by_images(partial(self._all_pairs, texts=once), images, self._bytes_of_an_image(images, once))
        return scores.index_select(1, texts.graphs.number)

    def _all_pairs(self, images: ImageEmbedding, texts: TextEmbedding) -> Float[Tensor, "n m"]:
        """The score of every image with every text, all at once."""
        logits, default = self.binding.phrase_logits(texts.phrases, images.keys)
        # Logits are computed once per distinct phrase; the competition is among the nodes of one text.
        slots = self._slots(logits[:, texts.graphs.phrase_of_node], default[:, None], images.values, texts)
        return self._score(slots, texts, texts.graphs.subjects, texts.graphs.objects)

    def _bytes_of_an_image(self, images: ImageEmbedding, texts: TextEmbedding) -> int:
        """Number of bytes that scoring all pairs at once keeps of each image for the backward pass."""
        (_, patches, width), nodes = images.keys.shape, texts.graphs.phrase_of_node.numel()
        edges = texts.graphs.predicate_of_edge.numel() * (4 * width + 6 * texts.predicates.shape[1])
        return 4 * (nodes * (5 * patches + 3 * width) + 2 * len(texts.phrases) * patches + edges)

    def pair_similarity(self, images: ImageEmbedding, texts: TextEmbedding) -> Float[Tensor, " n"]:
        """The score of image i with text i (equation 2)."""
        slots = self._slots(*self._paired_logits(images, texts), images.values, texts)
        return self._score(slots, texts, texts.graphs.subjects, texts.graphs.objects)

    def loss(self, images: ImageEmbedding, texts: TextEmbedding, targets: Targets) -> Float[Tensor, ""]:
        """InfoNCE (equation 5), plus the local loss (equation 6) if texts that belong to images have edges.

        Equation 4 adds two sums over the batch. Here the first is a mean of 2B terms, so the second is divided by 2B
        too, whatever the number of texts with edges; with `config.local_mean` it is divided by that number.
        """
        loss = contrastive_loss(self.similarity(images, texts), self.logit_scale(), targets)
        if self.config.local_weight and len(texts.graphs.related):
            own = texts._replace(graphs=texts.graphs.block(targets.rows)) if targets.block else texts
            local = self.altered_similarities(images, own, self.config.local_negatives)
            terms = len(texts.graphs.related) if self.config.local_mean else 2 * targets.matched
            loss = loss + self.config.local_weight * local_relation_loss(local, self.logit_scale()) / terms
        return loss

    def attention(self, images: ImageEmbedding, texts: TextEmbedding) -> Float[Tensor, "n q p"]:
        """Each node's share of each patch, for the nodes of text i on image i; absent nodes get none.

        Without competition, or with `focus`, it is each node's distribution over the patches.
        """
        logits, default = self._paired_logits(images, texts)
        return self._attend(logits, default, texts)

    def paired_slots(self, images: ImageEmbedding, texts: TextEmbedding) -> Layer:
        """The slots of the nodes of text i on image i (n, q, d)."""
        slots = self._slots(*self._paired_logits(images, texts), images.values, texts)
        return Layer(slots, texts.graphs.node_present)

    def image_parts(self, embedding: ImageEmbedding, tokens: Layer | None) -> dict[str, Layer]:
        """Keys and values of the patches."""
        return {"keys": Layer(embedding.keys), "values": Layer(embedding.values)}

    def text_parts(self, embedding: TextEmbedding, tokens: Layer | None) -> dict[str, Layer]:
        """The vectors of each graph's nodes and edges, with which slots are compared."""
        phrases, predicates, graphs = embedding
        return {
            "phrases": Layer(phrases[graphs.phrase_of_node], graphs.node_present),
            "predicates": Layer(predicates[graphs.predicate_of_edge], graphs.edge_present),
        }

    def text_rows(self, texts: GraphBatch) -> TextRows:
        """The nodes of each graph, then the predicates of its edges, which the tower reads in a second pass."""
        number = torch.cat([texts.phrase_of_node, len(texts.phrases) + texts.predicate_of_edge], dim=1)
        return TextRows(number, torch.cat([texts.node_present, texts.edge_present], dim=1))

    def altered_similarities(
        self, images: ImageEmbedding, texts: TextEmbedding, altered: tuple[str, ...] = ALTERED
    ) -> Float[Tensor, "k alternatives"]:
        """Scores of image i with text i: by the true graph, then by each altered one named in `altered` (equation 6).

        Rows are the k texts of `related`: those with edges, or all texts of a `block`. An altered graph that doesn't
        exist has -inf. A shuffled graph needs at least three nodes, such as two objects and the background.
        """
        texts = texts._replace(graphs=texts.graphs.first(len(images.keys)))
        slots = self._slots(*self._paired_logits(images, texts), images.values, texts)
        graphs = texts.graphs
        scores = [self._score(slots, texts, graphs.subjects, graphs.objects)]
        for name in altered:
            subjects, objects, exists = getattr(graphs, name)
            scores.append(self._score(slots, texts, subjects, objects).masked_fill(~exists, -torch.inf))
        return torch.stack(scores, dim=1).index_select(0, graphs.related)

    def _paired_logits(
        self, images: ImageEmbedding, texts: TextEmbedding
    ) -> tuple[Float[Tensor, "n q p"], Float[Tensor, "n default p"]]:
        """The logits of the nodes of text i on image i."""
        if not fits_in_memory(len(images.keys), 8 * len(texts.phrases) * images.keys.shape[1]):
            return self.binding.own_logits(texts.phrases, texts.graphs.phrase_of_node, images.keys)
        logits, default = self.binding.phrase_logits(texts.phrases, images.keys)
        rows = torch.arange(len(logits), device=logits.device)[:, None]
        return logits[rows, texts.graphs.phrase_of_node], default

    def _slots(
        self,
        logits: Float[Tensor, "n *b q p"],
        default: Float[Tensor, "n *#b default p"],
        values: Float[Tensor, "n p d"],
        texts: TextEmbedding,
    ) -> Float[Tensor, "n *b q d"]:
        return visual_slots(self._attend(logits, default, texts), values)

    def _attend(
        self, logits: Float[Tensor, "n *b q p"], default: Float[Tensor, "n *#b default p"], texts: TextEmbedding
    ) -> Float[Tensor, "n *b q p"]:
        """The attention weights of each query over the patches."""
        present = texts.graphs.node_present[..., None]
        if not self.config.competitive:
            return regular_attention(logits, present)
        attend = focused_attention if self.config.focus else competitive_attention
        return attend(logits, present, default)

    def _score(
        self,
        slots: Float[Tensor, "*b q d"],
        texts: TextEmbedding,
        subjects: Int64[Tensor, "c e"],
        objects: Int64[Tensor, "c e"],
    ) -> Float[Tensor, "*b"]:
        """The score by equation 2, with edges between the given subjects and objects."""
        graphs = texts.graphs
        # Compute norms of phrases once each, not once per image and text.
        phrases = F.normalize(texts.phrases, dim=-1)[graphs.phrase_of_node]
        nodes = (phrases * slots).sum(-1) / slots.norm(dim=-1).clamp_min(1e-8)
        relations = nodes[..., :0]
        if len(texts.predicates):
            predicates = texts.predicates[graphs.predicate_of_edge]
            subject_slots, object_slots = self._pick(slots, subjects), self._pick(slots, objects)
            relations = self.relation(predicates.expand(*subject_slots.shape[:-1], -1), subject_slots, object_slots)
        return structured_similarity(nodes, graphs.node_present, relations, graphs.edge_present, self.alpha, self.beta)

    @staticmethod
    def _pick(slots: Float[Tensor, "*b q d"], nodes: Int64[Tensor, "c e"]) -> Float[Tensor, "*b e d"]:
        """The slots of the nodes with these indices, in each text."""
        index = nodes[..., None].expand(*slots.shape[:-2], nodes.shape[-1], slots.shape[-1])
        return slots.gather(-2, index)
