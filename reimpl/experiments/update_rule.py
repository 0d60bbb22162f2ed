"""Fig. 3 and its appendix: replacing values, by update rule (setting 2)."""

from __future__ import annotations

from reimpl.experiments.points import Model, Sizes, retrieval_experiment

MODELS: tuple[Model, ...] = (
    ("dpfp1", "sum"),
    ("tanh", "fwm"),
    ("dpfp1", "fwm"),
    ("dpfp1", "delta"),
    ("dpfp2", "delta"),
    ("elu1", "delta"),
    ("favor64", "delta"),
    ("favor128", "delta"),
)
SIZES: dict[str, Sizes] = {
    "quick": {
        ("dpfp1", "sum"): (20,),
        ("dpfp1", "delta"): (20,),
        ("dpfp2", "delta"): (20,),
        ("elu1", "delta"): (20,),
    },
    "laptop": dict.fromkeys(MODELS, (20, 40)),
    "paper": dict.fromkeys(MODELS, tuple(range(20, 201, 20))),
}

EXPERIMENT = retrieval_experiment(
    "update-rule", "Fig. 3: retrieval loss where keys are written twice, by update rule", SIZES
)
