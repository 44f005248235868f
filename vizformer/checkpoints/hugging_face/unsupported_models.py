"""Types of `transformers` that predict tokens and do not open, each with what it has that is not here.

A test holds the lists against the classes of the installed `transformers`; docs/reference.md shows them.
"""

from collections.abc import Mapping

from vizformer.messages import N_, Message

WHY: tuple[tuple[Message, str], ...] = (
    (
        N_("router_jitter_noise: its router weighs two experts one after the other, each against those near it"),
        "phimoe",
    ),
    (N_("num_local_experts: its attention has experts as well"), "jetmoe"),
    (
        N_("num_experts: each expert takes so many tokens at most, and leaves out the others"),
        "switch_transformers nllb-moe",
    ),
    (N_("queries, keys and values in one tensor, and code of its own (auto_map)"), "internlm2"),
    (
        N_("kv_lora_rank: keys and values are made of a short vector for each token (latent attention)"),
        "axk1 longcat_flash minicpm3 mistral4 youtu",
    ),
    (
        N_("index_topk: a small scorer chooses which keys a query may see"),
        "axk2 deepseek_v32 deepseek_v4 dots3_note_text glm_moe_dsa hy_v4 minimax_m3_vl_text",
    ),
    (
        N_("a state in the place of attention, of another kind than those that open (state-space or recurrent layers)"),
        "bamba falcon_h1 falcon_mamba granitemoehybrid jamba mamba nemotron_h recurrent_gemma rwkv xlstm zamba zamba2",
    ),
    (
        N_("linear attention of another kind than the gated delta rule that opens"),
        "bailing_hybrid kimi_linear minimax olmo_hybrid",
    ),
    (
        N_("convolutions over neighbouring tokens in the place of attention or inside it"),
        "inkling2_text inkling_text lfm2 lfm2_moe lfm3 zaya",
    ),
    (
        N_("num_kv_shared_layers: layers that share their keys and values with others"),
        "gemma3n_text gemma4_text gemma4_unified_text",
    ),
    (N_("hc_count: several residual streams beside one another"), "qwen4_exp_text"),
    (N_("attention_chunk_size: queries see their own chunk of the text only"), "llama4_text"),
    (N_("learned embeddings of the language beside the positions"), "flaubert xlm"),
    (N_("attention over a memory of earlier texts, with scores of its own for distances"), "xlnet"),
    (N_("a table of relative positions in every layer"), "umt5"),
    (N_("encoder_attention_type: queries look at a neighbourhood and at summaries of blocks"), "longt5"),
    (
        N_("queries that look at a neighbourhood and at a few tokens of the whole text"),
        "bigbird_pegasus led longformer pegasus_x",
    ),
    (
        N_("tokens mixed in another way than by attention over all of them, or by an approximation of it"),
        "convbert fnet funnel mra nystromformer perceiver reformer squeezebert yoso",
    ),
    (N_("the difference of two attention maps in each head"), "diffllama"),
    (N_("a mask that the values themselves decide on"), "doge"),
    (N_("the same layers several times over, in nested cycles"), "hrm_text"),
    (N_("queries for several further tokens at once"), "prophetnet"),
    (N_("bytes put together to patches of lengths that another model chooses"), "blt"),
    (N_("weights of three values and inputs rounded to 8 bits"), "bitnet"),
    (N_("quant_mode: whole numbers in the place of fractions"), "ibert"),
    (N_("an activation with learned numbers of its own (xielu)"), "apertus"),
    (N_("layers that narrow the rows before attention, and have several networks each"), "mobilebert"),
    (N_("adapters, other ones for each language or task"), "jina_embeddings_v3 xmod"),
    (
        N_("inputs beside the tokens: places on a page, tables, entities, forms of characters, prompts"),
        "cpmant layoutlm luke roc_bert tapas udop",
    ),
    (N_("a vocabulary for each language, as two files, and static positions counted from the padding's"), "fsmt"),
    (
        N_("two models in one folder, each with a table of its own"),
        "encoder-decoder musicgen musicgen_melody t5gemma t5gemma2 vision-encoder-decoder",
    ),
    (N_("it reads images"), "trocr vit"),
    (N_("it reads images, and its norms do not subtract the mean"), "imagegpt"),
    (N_("it reads images beside texts"), "clip"),
    (
        N_("sound that it reads or makes"),
        "audioflamingo3 glmasr granite_speech granite_speech_plus moshi moss_transcribe_diarize musicflamingo nemo_speechlm "
        "qwen2_audio qwen3_asr seamless_m4t seamless_m4t_v2 vibevoice_asr voxtral voxtral_realtime whisper",
    ),
    (
        N_(
            "pictures, sound or the like that it reads beside texts, around a language model that does not open inside it"
        ),
        "aria aya_vision blip blip-2 chameleon cohere2_vision cohere_compass cosmos3_edge cosmos3_omni deepseek_ocr2 "
        "deepseek_vl deepseek_vl_hybrid diffusion_gemma dots3_note emu3 ernie4_5_vl_moe evolla exaone4_5 fast_vlm florence2 "
        "fuyu gemma3n gemma4 gemma4_assistant gemma4_unified gemma4_unified_assistant git glm46v glm4v glm4v_moe glm5_next "
        "glm_ocr glmga got_ocr2 granite4_vision granite_docling hunyuan_vl hyperclovax_vision_v2 idefics idefics2 idefics3 "
        "inkling2 inkling_mm_model instructblip instructblipvideo internvl janus kimi_k25 kosmos-2 kosmos-2.5 lfm2_vl "
        "lfm3_vl lighton_ocr llama4 llava_next_video llava_onevision minicpm_ocr minicpmv4_6 minicpmv4_7 minimax_m3_vl "
        "mistral_large4 mllama modernvbert molmo2 muse_glimmer muse_spark nemotron_h_omni neomme ovis2 paddleocr_vl "
        "paligemma perception_lm phi4_multimodal pi0 pix2struct pp_chart2table pp_formulanet qianfan_ocr "
        "qwen2_5_omni_thinker qwen3_5_moe qwen3_omni_moe_thinker qwen3_vl_moe qwen4_exp shieldgemma2 smolvlm step3p7 "
        "ultravbert unlimited_ocr video_llama_3 video_llava vipllava",
    ),
    (
        N_("a mixture of experts that nobody has compared with `transformers` here yet"),
        "afmoe aria_text beam cohere2_moe dbrx dots1 ernie4_5_moe exaone_moe flint granitemoe_swa granitemoeshared "
        "hunyuan_v1_moe hy_v3 kolibri1 laguna mellum mimo_v2_flash qwen3_5_moe_text solar_open",
    ),
    (
        N_("layers that nobody has compared with `transformers` here yet"),
        "arcee cohere_compass_text esm esmc gpt-sw3 granite_swa gte hunyuan_v1_dense hyperclovax jais2 modernbert-decoder "
        "nemotron persimmon rembert ultrabert vaultgemma",
    ),
)
BECAUSE: Mapping[str, Message] = {kind: why for why, kinds in WHY for kind in kinds.split()}

# Those whose tensors may have the names and shapes of GPT-2's and mean something else: never opened by names alone.
SAME_NAMES = ("imagegpt",)
