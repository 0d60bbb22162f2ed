"""Some real papers, as the labelled citations that ship with the project describe them.

DBLP's keys are formed as DBLP forms them; what the fakes say of these papers is what the sources
would say if every field here were right.
"""

from __future__ import annotations

from tests.provenance.world import WorldWork

ICML_2021 = "International Conference on Machine Learning, 18-24 July 2021, Virtual"
ICML_2020 = "International Conference on Machine Learning, 13-18 July 2020, Virtual"
_ICML = "International Conference on Machine Learning"
_ICLR = "International Conference on Learning Representations"
_NEURIPS = "Neural Information Processing Systems"

SCHLAG = WorldWork(
    title="Linear Transformers Are Secretly Fast Weight Programmers",
    authors=("Imanol Schlag", "Kazuki Irie", "Jürgen Schmidhuber"),
    year=2021,
    venue=_ICML,
    series="icml",
    volume="139",
    pages="9355-9366",
    dblp_key="conf/icml/SchlagIS21",
    arxiv_id="2102.11174",
    titles=(
        "Linear Transformers Are Secretly Fast Weight Memory Systems",
        "Linear Transformers Are Secretly Fast Weight Memory Systems",
        "Linear Transformers Are Secretly Fast Weight Programmers",
    ),
    posted="2021-02-22",
    pmlr_id="schlag21a",
    pmlr_header=ICML_2021,
)
KATHAROPOULOS = WorldWork(
    title="Transformers are RNNs: Fast Autoregressive Transformers with Linear Attention",
    authors=("Angelos Katharopoulos", "Apoorv Vyas", "Nikolaos Pappas", "François Fleuret"),
    year=2020,
    venue=_ICML,
    series="icml",
    volume="119",
    pages="5156-5165",
    dblp_key="conf/icml/KatharopoulosV020",
    arxiv_id="2006.16236",
    posted="2020-06-29",
    comment="ICML 2020, project at https://linear-transformers.com/",
    pmlr_id="katharopoulos20a",
    pmlr_header=ICML_2020,
)
IRIE = WorldWork(
    title="Going Beyond Linear Transformers with Recurrent Fast Weight Programmers",
    authors=("Kazuki Irie", "Imanol Schlag", "Róbert Csordás", "Jürgen Schmidhuber"),
    year=2021,
    venue=_NEURIPS,
    series="nips",
    pages="7703-7717",
    dblp_key="conf/nips/IrieSCS21",
    arxiv_id="2106.06295",
    posted="2021-06-11",
)
MUNKHDALAI = WorldWork(
    title="Learning Associative Inference Using Fast Weight Memory",
    authors=("Imanol Schlag", "Tsendsuren Munkhdalai", "Jürgen Schmidhuber"),
    year=2021,
    venue=_ICLR,
    series="iclr",
    dblp_key="conf/iclr/SchlagMS21",
    arxiv_id="2011.07831",
    posted="2020-11-16",
    openreview_id="TuK6agbdt27",
)
PERFORMER = WorldWork(
    title="Rethinking Attention with Performers",
    authors=(
        "Krzysztof Marcin Choromanski",
        "Valerii Likhosherstov",
        "David Dohan",
        "Xingyou Song",
        "Andreea Gane",
        "Tamás Sarlós",
        "Peter Hawkins",
        "Jared Quincy Davis",
        "Afroz Mohiuddin",
        "Lukasz Kaiser",
        "David Benjamin Belanger",
        "Lucy J. Colwell",
        "Adrian Weller",
    ),
    year=2021,
    venue=_ICLR,
    series="iclr",
    dblp_key="conf/iclr/ChoromanskiLDSG21",
    arxiv_id="2009.14794",
    posted="2020-09-30",
    openreview_id="Ua6zuk0WRH",
)
DELTANET = WorldWork(
    title="Parallelizing Linear Transformers with the Delta Rule over Sequence Length",
    authors=("Songlin Yang", "Bailin Wang", "Yu Zhang", "Yikang Shen", "Yoon Kim"),
    year=2024,
    venue=_NEURIPS,
    series="nips",
    dblp_key="conf/nips/YangWZSK24",
    arxiv_id="2406.06484",
    posted="2024-06-10",
)
GATED_DELTANET = WorldWork(
    title="Gated Delta Networks: Improving Mamba2 with Delta Rule",
    authors=("Songlin Yang", "Jan Kautz", "Ali Hatamizadeh"),
    year=2025,
    venue=_ICLR,
    series="iclr",
    dblp_key="conf/iclr/YangKH25",
    arxiv_id="2412.06464",
    posted="2024-12-09",
    openreview_id="r8H7xhYPwz",
)
ROFORMER = WorldWork(
    title="RoFormer: Enhanced transformer with Rotary Position Embedding",
    authors=(
        "Jianlin Su",
        "Yu Lu",
        "Shengfeng Pan",
        "Ahmed Murtadha",
        "Bo Wen",
        "Yunfeng Liu",
    ),
    year=2024,
    venue="Neurocomputing",
    volume="568",
    pages="127063",
    doi="10.1016/j.neucom.2023.127063",
    dblp_key="journals/ijon/SuLPMWL24",
    arxiv_id="2104.09864",
    posted="2021-04-20",
)
TITANS = WorldWork(
    title="Titans: Learning to Memorize at Test Time",
    authors=("Ali Behrouz", "Peilin Zhong", "Vahab Mirrokni"),
    year=2024,
    arxiv_id="2501.00663",
    posted="2024-12-31",
)
AFLNET = WorldWork(
    title="AFLNet Five Years Later: On Coverage-Guided Protocol Fuzzing",
    authors=("Ruijie Meng", "Van-Thuan Pham", "Marcel Böhme", "Abhik Roychoudhury"),
    year=2024,
    arxiv_id="2412.20324",
    posted="2024-12-29",
)

PAPERS = (
    SCHLAG,
    KATHAROPOULOS,
    IRIE,
    MUNKHDALAI,
    PERFORMER,
    DELTANET,
    GATED_DELTANET,
    ROFORMER,
    TITANS,
    AFLNET,
)
