"""The weight matrices of language and vision models, from the figures of their configurations.

A matrix is that of the published checkpoint: where it holds query, key and value in one, or gate
and up, so do the lists. The embedding of tokens counts towards a model's parameters and is listed
only as far as it is a product, which is the LM head. Attention itself (products of activations) and
the experts' choice of tokens are no weights and are left out; a router is listed. One name stands
for all matrices of its size: kv for that of the keys and that of the values, mlp_gate for gate and
up, the first of several names where two sizes are equal (q for attention_output).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from network_layers_types import TRAINING, VALIDATION, Layer


@dataclass(frozen=True)
class Matrix:
    """`count` matrices of the model, each from k inputs to n outputs."""

    name: str
    n: int
    k: int
    count: int = 1


@dataclass(frozen=True)
class GemmModel:
    """One model, with its published number of parameters (in millions) where it is known."""

    name: str
    title: str
    role: str
    matrices: list[Matrix]
    # Weights that no product uses: embeddings beside an LM head of their own, or without one.
    lookups: int = 0
    published: Mapping[str, float] = dataclasses.field(default_factory=dict)
    problem_type: str = "gemm"

    def layers(self) -> list[Layer]:
        return [Layer(m.name, f"gemm m=1 n={m.n} k={m.k}", (m.n, m.k), "product")
                for m in self.matrices]

    def totals(self) -> dict[str, float]:
        return {"weights": (sum(m.n * m.k * m.count for m in self.matrices) + self.lookups) / 1e6}


GEMM_MODELS: list[GemmModel] = []


def model(role: str, name: str, title: str, matrices: list[Matrix], lookups: int = 0,
          **published: float) -> None:
    GEMM_MODELS.append(GemmModel(name, title, role, matrices, lookups, published))


# Parts of transformers.

def attention(hidden: int, heads: int, count: int, kv_heads: int = 0, head_dim: int = 0,
              fused: bool = False, prefix: str = "") -> list[Matrix]:
    """Without `kv_heads` every head has keys and values of its own."""
    head_dim = head_dim or hidden // heads
    q, kv = heads * head_dim, (kv_heads or heads) * head_dim
    first = [Matrix(f"{prefix}qkv", q + 2 * kv, hidden, count)] if fused else \
        [Matrix(f"{prefix}q", q, hidden, count), Matrix(f"{prefix}kv", kv, hidden, 2 * count)]
    return [*first, Matrix(f"{prefix}attention_output", hidden, q, count)]


def mlp(hidden: int, inner: int, count: int, prefix: str = "") -> list[Matrix]:
    return [Matrix(f"{prefix}mlp_up", inner, hidden, count),
            Matrix(f"{prefix}mlp_down", hidden, inner, count)]


def gated_mlp(hidden: int, inner: int, count: int, fused: bool = False,
              prefix: str = "") -> list[Matrix]:
    gate_up = Matrix(f"{prefix}mlp_gate_up", 2 * inner, hidden, count) if fused else \
        Matrix(f"{prefix}mlp_gate", inner, hidden, 2 * count)
    return [gate_up, Matrix(f"{prefix}mlp_down", hidden, inner, count)]


def head(vocabulary: int, hidden: int) -> Matrix:
    return Matrix("lm_head", vocabulary, hidden)


def gated_decoder(hidden: int, heads: int, inner: int, layers: int, vocabulary: int,
                  kv_heads: int = 0, head_dim: int = 0, fused: bool = False) -> list[Matrix]:
    """The matrices of LLaMA's family."""
    return [*attention(hidden, heads, layers, kv_heads, head_dim, fused),
            *gated_mlp(hidden, inner, layers, fused), head(vocabulary, hidden)]


def plain_decoder(hidden: int, heads: int, layers: int, vocabulary: int, kv_heads: int = 0,
                  fused: bool = True) -> list[Matrix]:
    """The matrices of GPT-2's family, whose MLP is four times as wide as the rest."""
    return [*attention(hidden, heads, layers, kv_heads, fused=fused),
            *mlp(hidden, 4 * hidden, layers), head(vocabulary, hidden)]


def bert(hidden: int, heads: int, layers: int) -> list[Matrix]:
    # The pooler and the transformation before the head are square too: one each.
    return [*attention(hidden, heads, layers), *mlp(hidden, 4 * hidden, layers),
            Matrix("pooler", hidden, hidden), head(30522, hidden)]


def vision_transformer(hidden: int, heads: int, layers: int, patch: int) -> list[Matrix]:
    return [Matrix("patch_embedding", hidden, 3 * patch * patch),
            *attention(hidden, heads, layers, fused=True), *mlp(hidden, 4 * hidden, layers),
            Matrix("classifier", 1000, hidden)]


def swin(width: int, depths: Sequence[int], patch: int) -> list[Matrix]:
    out = [Matrix("patch_embedding", width, 3 * patch * patch)]
    for stage, depth in enumerate(depths, 1):
        if stage > 1:
            out.append(Matrix(f"merge{stage}", 2 * width, 4 * width))
            width *= 2
        out += attention(width, 1, depth, fused=True, prefix=f"stage{stage}_")
        out += mlp(width, 4 * width, depth, prefix=f"stage{stage}_")
    return [*out, Matrix("classifier", 1000, width)]


def whisper(hidden: int, heads: int, layers: int, vocabulary: int) -> list[Matrix]:
    """Encoder, decoder, and the decoder's attention to the encoder; the stem is convolutions."""
    return [*attention(hidden, heads, 3 * layers), *mlp(hidden, 4 * hidden, 2 * layers),
            head(vocabulary, hidden)]


def experts_of(hidden: int, inner: int, experts: int, layers: int) -> list[Matrix]:
    return [Matrix("router", experts, hidden, layers),
            *gated_mlp(hidden, inner, experts * layers, prefix="expert_")]


def latent_attention(hidden: int, heads: int, layers: int, query_rank: int = 0) -> list[Matrix]:
    """DeepSeek's: heads of 128 with 64 more for positions, keys and values of rank 512."""
    query = [Matrix("q_down", query_rank, hidden, layers),
             Matrix("q_up", heads * 192, query_rank, layers)] if query_rank else \
        [Matrix("q", heads * 192, hidden, layers)]
    return [*query, Matrix("kv_down", 512 + 64, hidden, layers),
            Matrix("kv_up", heads * 256, 512, layers),
            Matrix("attention_output", hidden, heads * 128, layers)]


def deepseek(hidden: int, heads: int, layers: int, dense_layers: int, dense: int, expert: int,
             experts: int, shared: int, vocabulary: int, query_rank: int = 0) -> list[Matrix]:
    sparse = layers - dense_layers
    return [*latent_attention(hidden, heads, layers, query_rank),
            *gated_mlp(hidden, dense, dense_layers), *experts_of(hidden, expert, experts, sparse),
            *gated_mlp(hidden, shared * expert, sparse, prefix="shared_"),
            head(vocabulary, hidden)]


def perceptron(prefix: str, *widths: int) -> list[Matrix]:
    return [Matrix(f"{prefix}{i}", n, k) for i, (k, n) in enumerate(zip(widths, widths[1:]), 1)]


# Encoders of text, images and sound.

VIT = ("Dosovitskiy et al., An image is worth 16x16 words: transformers for image recognition at "
       "scale, 2020")

model(TRAINING, "bert_base", "BERT base: Devlin et al., BERT: pre-training of deep bidirectional "
      "transformers for language understanding, 2018", bert(768, 12, 12), weights=109.5)
model(TRAINING, "bert_large", "BERT large: Devlin et al., BERT: pre-training of deep bidirectional "
      "transformers for language understanding, 2018", bert(1024, 16, 24), weights=335.1)
model(TRAINING, "t5_base", "T5 base: Raffel et al., Exploring the limits of transfer learning with "
      "a unified text-to-text transformer, 2019", [*attention(768, 12, 36), *mlp(768, 3072, 24),
                                                   head(32128, 768)], weights=222.9)
model(VALIDATION, "t5_v1_1_xl", "T5 v1.1 XL: Raffel et al., Exploring the limits of transfer "
      "learning with a unified text-to-text transformer, 2019; published configuration google/"
      "t5-v1_1-xl", [*attention(2048, 32, 72), *gated_mlp(2048, 5120, 48), head(32128, 2048)],
      lookups=32128 * 2048, weights=2849.8)
model(TRAINING, "vit_b16", f"ViT-B/16: {VIT}", vision_transformer(768, 12, 12, 16),
      weights=86.57)
model(TRAINING, "vit_l16", f"ViT-L/16: {VIT}", vision_transformer(1024, 16, 24, 16),
      weights=304.33)
model(VALIDATION, "vit_h14", f"ViT-H/14: {VIT}", vision_transformer(1280, 16, 32, 14),
      weights=632.0)
model(VALIDATION, "deit_small", "DeiT-S: Touvron et al., Training data-efficient image "
      "transformers and distillation through attention, 2020", vision_transformer(384, 6, 12, 16),
      weights=22.05)
model(VALIDATION, "swin_t", "Swin-T: Liu et al., Swin transformer: hierarchical vision transformer "
      "using shifted windows, 2021", swin(96, (2, 2, 6, 2), 4), weights=28.29)
model(TRAINING, "swin_b", "Swin-B: Liu et al., Swin transformer: hierarchical vision transformer "
      "using shifted windows, 2021", swin(128, (2, 2, 18, 2), 4), weights=87.77)
model(TRAINING, "clip_text_b32", "CLIP ViT-B/32, its text encoder: Radford et al., Learning "
      "transferable visual models from natural language supervision, 2021",
      [*attention(512, 8, 12, fused=True), *mlp(512, 2048, 12), Matrix("projection", 512, 512)],
      lookups=49408 * 512, weights=63.4)
model(TRAINING, "whisper_small", "Whisper small: Radford et al., Robust speech recognition via "
      "large-scale weak supervision, 2022", whisper(768, 12, 12, 51865), weights=241.73)
model(VALIDATION, "whisper_large_v3", "Whisper large-v3: Radford et al., Robust speech recognition "
      "via large-scale weak supervision, 2022; published configuration openai/whisper-large-v3",
      whisper(1280, 20, 32, 51866), weights=1543.5)
model(VALIDATION, "dlrm", "DLRM: Naumov et al., Deep learning recommendation model for "
      "personalization and recommendation systems, 2019 (widths of the MLPerf benchmark)",
      [*perceptron("bottom", 13, 512, 256, 128),
       *perceptron("top", 27 * 26 // 2 + 128, 1024, 1024, 512, 256, 1)])
model(TRAINING, "dlrm_kaggle", "DLRM: Naumov et al., Deep learning recommendation model for "
      "personalization and recommendation systems, 2019 (widths for Criteo's Kaggle data)",
      [*perceptron("bottom", 13, 512, 256, 64, 16),
       *perceptron("top", 27 * 26 // 2 + 16, 512, 256, 1)])

# Decoders with a plain MLP.

model(TRAINING, "gpt2", "GPT-2: Radford et al., Language models are unsupervised multitask "
      "learners, 2019", plain_decoder(768, 12, 12, 50257), weights=124.44)
model(VALIDATION, "gpt2_xl", "GPT-2 XL: Radford et al., Language models are unsupervised multitask "
      "learners, 2019", plain_decoder(1600, 25, 48, 50257), weights=1557.6)
model(TRAINING, "gpt_j_6b", "GPT-J 6B: Wang and Komatsuzaki, GPT-J-6B: a 6 billion parameter "
      "autoregressive language model, 2021", plain_decoder(4096, 16, 28, 50400, fused=False),
      lookups=50400 * 4096, weights=6053)
model(VALIDATION, "gpt_neox_20b", "GPT-NeoX 20B: Black et al., GPT-NeoX-20B: an open-source "
      "autoregressive language model, 2022", plain_decoder(6144, 64, 44, 50432),
      lookups=50432 * 6144, weights=20554)
model(TRAINING, "opt_6_7b", "OPT 6.7B: Zhang et al., OPT: open pre-trained transformer language "
      "models, 2022", plain_decoder(4096, 32, 32, 50272, fused=False), weights=6658)
model(TRAINING, "bloom_7b1", "BLOOM 7B1: BigScience Workshop, BLOOM: a 176B-parameter open-access "
      "multilingual language model, 2022", plain_decoder(4096, 32, 30, 250880), weights=7069)
model(VALIDATION, "falcon_7b", "Falcon 7B: Almazrouei et al., The Falcon series of open language "
      "models, 2023", plain_decoder(4544, 71, 32, 65024, kv_heads=1), weights=6921.72)
model(TRAINING, "falcon_40b", "Falcon 40B: Almazrouei et al., The Falcon series of open language "
      "models, 2023", plain_decoder(8192, 128, 60, 65024, kv_heads=8), weights=41303)
model(TRAINING, "phi_2", "Phi-2: Javaheripi et al., Phi-2: the surprising power of small language "
      "models, 2023; published configuration microsoft/phi-2",
      plain_decoder(2560, 32, 32, 51200, fused=False), lookups=51200 * 2560, weights=2780)
model(VALIDATION, "starcoder2_3b", "StarCoder2 3B: Lozhkov et al., StarCoder 2 and The Stack v2: "
      "the next generation, 2024", plain_decoder(3072, 24, 30, 49152, kv_heads=2, fused=False),
      weights=3030)

# Decoders with a gated MLP.

model(TRAINING, "llama_2_7b", "Llama 2 7B: Touvron et al., Llama 2: open foundation and fine-tuned "
      "chat models, 2023", gated_decoder(4096, 32, 11008, 32, 32000), lookups=32000 * 4096,
      weights=6738)
model(VALIDATION, "llama_2_13b", "Llama 2 13B: Touvron et al., Llama 2: open foundation and "
      "fine-tuned chat models, 2023", gated_decoder(5120, 40, 13824, 40, 32000),
      lookups=32000 * 5120, weights=13016)
model(TRAINING, "llama_2_70b", "Llama 2 70B: Touvron et al., Llama 2: open foundation and "
      "fine-tuned chat models, 2023", gated_decoder(8192, 64, 28672, 80, 32000, kv_heads=8),
      lookups=32000 * 8192, weights=68977)
model(TRAINING, "llama_3_8b", "Llama 3 8B: Dubey et al., The Llama 3 herd of models, 2024",
      gated_decoder(4096, 32, 14336, 32, 128256, kv_heads=8), lookups=128256 * 4096, weights=8030)
model(TRAINING, "llama_3_70b", "Llama 3 70B: Dubey et al., The Llama 3 herd of models, 2024",
      gated_decoder(8192, 64, 28672, 80, 128256, kv_heads=8), lookups=128256 * 8192,
      weights=70554)
model(VALIDATION, "llama_3_2_1b", "Llama 3.2 1B: Dubey et al., The Llama 3 herd of models, 2024; "
      "published configuration meta-llama/Llama-3.2-1B",
      gated_decoder(2048, 32, 8192, 16, 128256, kv_heads=8), weights=1236)
model(TRAINING, "tinyllama_1_1b", "TinyLlama 1.1B: Zhang, Zeng, Wang and Lu, TinyLlama: an "
      "open-source small language model, 2024",
      gated_decoder(2048, 32, 5632, 22, 32000, kv_heads=4), lookups=32000 * 2048, weights=1100)
model(TRAINING, "mistral_7b", "Mistral 7B: Jiang et al., Mistral 7B, 2023",
      gated_decoder(4096, 32, 14336, 32, 32000, kv_heads=8), lookups=32000 * 4096, weights=7242)
model(TRAINING, "mixtral_8x7b", "Mixtral 8x7B: Jiang et al., Mixtral of experts, 2024",
      [*attention(4096, 32, 32, kv_heads=8), *experts_of(4096, 14336, 8, 32), head(32000, 4096)],
      lookups=32000 * 4096, weights=46703)
model(TRAINING, "qwen2_7b", "Qwen2 7B: Yang et al., Qwen2 technical report, 2024",
      gated_decoder(3584, 28, 18944, 28, 152064, kv_heads=4), lookups=152064 * 3584, weights=7616)
model(VALIDATION, "qwen2_5_0_5b", "Qwen2.5 0.5B: Qwen team, Qwen2.5 technical report, 2024",
      gated_decoder(896, 14, 4864, 24, 151936, kv_heads=2), weights=494)
model(TRAINING, "qwen2_5_1_5b", "Qwen2.5 1.5B: Qwen team, Qwen2.5 technical report, 2024",
      gated_decoder(1536, 12, 8960, 28, 151936, kv_heads=2), weights=1544)
model(VALIDATION, "qwen2_5_14b", "Qwen2.5 14B: Qwen team, Qwen2.5 technical report, 2024",
      gated_decoder(5120, 40, 13824, 48, 152064, kv_heads=8), lookups=152064 * 5120,
      weights=14770)
model(TRAINING, "yi_34b", "Yi 34B: 01.AI, Yi: open foundation models by 01.AI, 2024",
      gated_decoder(7168, 56, 20480, 60, 64000, kv_heads=8), lookups=64000 * 7168, weights=34389)
model(VALIDATION, "gemma_2b", "Gemma 2B: Gemma team, Gemma: open models based on Gemini research "
      "and technology, 2024", gated_decoder(2048, 8, 16384, 18, 256000, kv_heads=1, head_dim=256),
      weights=2506)
model(VALIDATION, "gemma_7b", "Gemma 7B: Gemma team, Gemma: open models based on Gemini research "
      "and technology, 2024", gated_decoder(3072, 16, 24576, 28, 256000, head_dim=256),
      weights=8538)
model(VALIDATION, "gemma_2_9b", "Gemma 2 9B: Gemma team, Gemma 2: improving open language models "
      "at a practical size, 2024",
      gated_decoder(3584, 16, 14336, 42, 256000, kv_heads=8, head_dim=256), weights=9242)
model(VALIDATION, "phi_3_mini", "Phi-3-mini: Abdin et al., Phi-3 technical report: a highly "
      "capable language model locally on your phone, 2024",
      gated_decoder(3072, 32, 8192, 32, 32064, fused=True), lookups=32064 * 3072, weights=3821)
model(VALIDATION, "deepseek_v2_lite", "DeepSeek-V2-Lite: DeepSeek-AI, DeepSeek-V2: a strong, "
      "economical, and efficient mixture-of-experts language model, 2024",
      deepseek(2048, 16, 27, 1, 10944, 1408, 64, 2, 102400), lookups=102400 * 2048, weights=15706)
model(VALIDATION, "deepseek_v3", "DeepSeek-V3: DeepSeek-AI, DeepSeek-V3 technical report, 2024 "
      "(without multi-token prediction)",
      deepseek(7168, 128, 61, 3, 18432, 2048, 256, 1, 129280, query_rank=1536),
      lookups=129280 * 7168, weights=671026)
