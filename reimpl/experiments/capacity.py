"""Fig. 2: how many associations a sum of outer products holds, by feature map (setting 1)."""

from __future__ import annotations

from reimpl.experiments.points import Model, Sizes, retrieval_experiment

MAPS = ("elu1", "dpfp1", "dpfp2", "dpfp3", "favor64", "favor128", "favor512")
MODELS: tuple[Model, ...] = (("softmax", "softmax"), *((phi, "sum") for phi in MAPS))
SIZES: dict[str, Sizes] = {
    "quick": {
        ("softmax", "softmax"): (20, 40, 60),
        ("elu1", "sum"): (20, 40, 60, 80),
        ("dpfp1", "sum"): (20, 40, 60, 100),
        ("dpfp2", "sum"): (20, 60),
        ("dpfp3", "sum"): (20, 60),
        ("favor64", "sum"): (20,),
    },
    "laptop": dict.fromkeys(MODELS, (20, 40, 60, 80, 100, 140, 200)),
    "paper": dict.fromkeys(MODELS, tuple(range(20, 601, 20))),
}

EXPERIMENT = retrieval_experiment(
    "capacity",
    "Fig. 2: retrieval loss against the number of associations, by feature map",
    SIZES,
)
