#!/usr/bin/env bash
# The whole workflow of torch-diode's guide, with foretune in place of its Python toolkit.
# The numbers in the environment make it small: NUM_SHAPES=6 SHAPESET=shapes.csv ./workflow.sh
set -e

# Configuration
SEED="${SEED:-50}"
DATA_DIR="${DATA_DIR:-./data}"
TRAIN_DATASET="${DATA_DIR}/seed_${SEED}_train_dataset.msgpack"
VALIDATION_DATASET="${DATA_DIR}/validation/validation_dataset.msgpack"
MODEL_PATH="${DATA_DIR}/matmul_model.ftm"
LOG_DIR="${DATA_DIR}/logs"
NUM_SHAPES="${NUM_SHAPES:-1000}"
MAX_FLOPS="${MAX_FLOPS:-1e9}"
SEARCH_SPACE="${SEARCH_SPACE:-EXHAUSTIVE}"
OPERATION_SHAPESET_PATH="${SHAPESET:-operation_shapeset.json}"
FORETUNE="${FORETUNE:-foretune}"

# Step 1: data directories
mkdir -p "${DATA_DIR}/validation"

# Step 2: training data set
"${FORETUNE}" \
  --format msgpack \
  --seed "${SEED}" \
  collect \
  --output "${TRAIN_DATASET}" \
  --num-shapes "${NUM_SHAPES}" \
  --log-normal \
  --max-flops "${MAX_FLOPS}" \
  --search-space "${SEARCH_SPACE}" \
  --search-mode max-autotune \
  --chunk-size 5

# Step 3: model
"${FORETUNE}" \
  --seed "${SEED}" \
  train \
  --data-dir "${DATA_DIR}" \
  --model "${MODEL_PATH}" \
  --model-type gbdt \
  --log-dir "${LOG_DIR}"

# Step 4: validation data set, of problems that the training data does not hold
"${FORETUNE}" \
  --format msgpack \
  --seed "${SEED}" \
  create-validation \
  --output "${VALIDATION_DATASET}" \
  --shapeset "${OPERATION_SHAPESET_PATH}" \
  --num-shapes "${VALIDATION_SHAPES:-30}" \
  --operations mm addmm bmm \
  --max-flops "${MAX_FLOPS}" \
  --training-data "${DATA_DIR}" \
  --search-space "${SEARCH_SPACE}" \
  --search-mode max-autotune

# Step 5: validation
"${FORETUNE}" \
  --seed "${SEED}" \
  validate-model \
  --model "${MODEL_PATH}" \
  --dataset "${VALIDATION_DATASET}" \
  --top-n-worst 10

echo "Workflow completed."
