"""The table of rules that are vLLM's own; `engines/rules.py` has those of every engine.

A new rule is a function and an entry in one of the modules below, with an accepted and a refused example in
`tests/engines/test_vllm_rules.py`.
"""

from engines.base import Rule
from engines.vllm_counterfactual import COUNTERFACTUAL_RULES
from engines.vllm_rules_drafter import DRAFTER_RULES
from engines.vllm_rules_engine import ENGINE_RULES
from engines.vllm_rules_options import OPTION_RULES

VLLM_RULES: tuple[Rule, ...] = (*ENGINE_RULES, *DRAFTER_RULES, *OPTION_RULES, *COUNTERFACTUAL_RULES)
"""vLLM's own rules."""
