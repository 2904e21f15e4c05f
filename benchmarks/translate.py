"""Our decoding against Hugging Face's `generate` and CTranslate2, all with the same weights.

python benchmarks/translate.py --threads 2 --device cpu
"""

import sys

from glassformer.cli import main

if __name__ == "__main__":
    sys.exit(main(["bench", "translate", *sys.argv[1:]]))
