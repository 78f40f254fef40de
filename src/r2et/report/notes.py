"""Plain words about the methods, and the page's glossary."""

from __future__ import annotations

METHOD = (
    (
        "What a reason is",
        "The model's explanation gives each feature a score for the class it decided on; the k"
        " features with the highest scores are the reasons a person is shown. Ties are broken by"
        " the order of the features.",
    ),
    (
        "What the attack does",
        "For each row it searches for the change of the input, no larger than the radius and"
        " without changing the predicted class, that drives the most features out of the top k."
        " Every result is checked again from scratch: size of the change, prediction, top k. An"
        " attack that finds nothing proves nothing.",
    ),
    (
        "What the proof says",
        "Up to the proved radius there is no change of the input at all, found or not found, that"
        " alters the set of the top k. It bounds every value inside the network over all those"
        " changes at once, rounding included. Of changes in a table's own units either every one is"
        " tried, or all are bounded; the page says which. Where the bounds are too wide, a stable"
        " row stays unproved: it is then counted as unknown.",
    ),
    (
        "What lies between",
        "A row is unknown at a radius when no attack has changed its reasons there and no proof"
        " covers it. A better proof or a better attack can only make this share smaller.",
    ),
    (
        "What the audit does not say",
        "It holds for the rows that were given, and intervals cover the chance of drawing them, not"
        " a change of the population. Radii are in units of the model's input, after any scaling of"
        " the features; unless the changes allowed say otherwise, a column may move by any"
        " fraction, even one that only ever holds 0 or 1. Stable reasons need not be right, fair or"
        " different from person to person: hence accuracy, faithfulness and individuality beside"
        " them.",
    ),
)
ASSUMPTIONS = (
    "The network is in evaluation mode and is the one that will be used; it is computed in IEEE"
    " arithmetic without reduced-precision shortcuts (TF32), with elementary functions good to 8"
    " units in the last place; the explanation is the plain gradient of the class predicted at the"
    " unchanged row."
)
GLOSSARY = (
    ("Attack", "A search for a small change that alters the reasons but not the decision."),
    ("AUC", "Area under the ROC curve: 0.5 is guessing, 1 is perfect."),
    ("Broken", "An attack changed the reasons of the row within the radius."),
    (
        "Certified, proved",
        "No change within the radius can alter the set of reasons; their order it may.",
    ),
    (
        "Confidence interval",
        "Where the figure would lie for other rows of the same kind: exact for shares of rows, by"
        " bootstrap for other means, by order statistics for medians. A single row has none.",
    ),
    ("First flip", "The step of the papers' attack at which a reason is lost for the first time."),
    ("Hessian norm", "How strongly the explanation bends at the row; large is fragile."),
    ("k", "How many reasons a person is shown."),
    ("Noise floor", "What random changes of the same size do; an attack must do worse than that."),
    ("P@k", "Precision at k: the share of the k reasons that are still among the k afterwards."),
    ("Pareto front", "Models that no other model here beats in both respects."),
    ("Radius", "The size of the largest change that is considered."),
    ("Thickness", "How far the reasons lead over the other features, on average around the row."),
)
SETTINGS = {
    "k": "reasons shown (k)",
    "radius": "radius",
    "norm": "size of a change",
    "region": "changes allowed",
    "explainer": "explanation",
    "budget": "effort of the attack",
    "seed": "seed",
    "minutes": "time allowed, minutes",
    "chunk": "rows at once",
    "level": "level of the intervals",
    "rows_given": "rows given",
    "rows_asked": "rows asked for",
    "limit": "largest radius searched",
    "only": "rows audited: those decided",
    "cutoff": "decided for class 1 from probability",
}
