"""How the figures come about, in plain sentences: (term, text), for every form of the report."""

METHODS: tuple[tuple[str, str], ...] = (
    (
        "Pairing",
        (
            "A ratio compares an arm with the baseline of its own block, segment, layout and load level: "
            "the same devices, the same conversations in the same order, the same recorded histories and "
            "output lengths. Its denominator is the geometric mean of the baseline measured first and "
            "last in the segment."
        ),
    ),
    (
        "Interval",
        (
            "At each load level the log metric is fitted with an effect of every arm and of every segment"
            " of a layout; the residual variance is pooled over all arms and layouts. Intervals are "
            "Student's t, widened to hold for all arms of one baseline together (Dunnett). Without a "
            "second block there is no interval, and nothing is decided."
        ),
    ),
    (
        "Verdict",
        (
            "With t the larger of the practical threshold and the A/A spread of the baselines at that "
            "level: wins if the interval lies wholly above 1 + t, loses if wholly below 1/(1 + t), no "
            "difference if wholly between, otherwise undecided."
        ),
    ),
    (
        "Recommendation",
        (
            "At each level the best, by estimate, of the baselines and of the arms that win. Neighbouring"
            " levels with the same choice are one range, which ends where the two choices are alike. A "
            "winner is provisional until it wins again in fresh blocks, which are judged by themselves."
        ),
    ),
    (
        "Crossover",
        (
            "The load from which a ratio lies below 1: a bracket of two levels tried, and an estimate in "
            "log ratio over log load. Its interval comes from drawing the levels' mean log ratios with "
            "their pooled covariance: levels of one engine share that engine's start, and a level without"
            " a second measurement borrows the mean variance of the others. Running out of memory counts "
            "as a loss."
        ),
    ),
    (
        "Other intervals",
        (
            "Intervals that explain (acceptance, step cost, shares) are for one comparison each and are no "
            "verdicts."
        ),
    ),
    (
        "Marks",
        (
            "emulated: an emulated engine made the figures. forced acceptance: what was accepted is no "
            "property of a drafter. shared cores: client and engine had no cores of their own, so there "
            "is no verdict. counterfactual: an engine that nobody would serve with, measured to see a "
            "cause."
        ),
    ),
)
