"""A first hour with Gleaner in Python: this script is a tutorial, and a test runs it.

Run it with PYTHONPATH=build/release/python and GLEANER_BIN=build/release/bin where the packages
python3-gleaner, gleaner-master and gleaner are not installed.
"""

import tempfile

from gleaner import Gleaner, Model

# ---- 1. Examples: texts, and for each a list of tags ---------------------------------------------

ANIMALS = {
    "owl": "owl night feathers hoot tree", "bee": "bee honey flower sting hive",
    "cat": "cat whiskers mouse purr sofa", "cow": "cow milk field grass moo",
    "eel": "eel river fish slippery water", "fox": "fox red clever hen forest",
}
texts, tags = [], []
for i in range(600):
    animal, words = list(ANIMALS.items())[i % len(ANIMALS)]
    words = words.split()
    texts.append(f"The {words[i // 6 % 5]} and the {words[i // 30 % 5]}, number {i % 17}")
    tags.append([animal, "flies" if animal in ("owl", "bee") else "does not fly"])

# ---- 2. Train, on this machine, and measure on examples that were held out -----------------------
# Few texts would get a hidden layer; hidden=0 gives each label weights straight over words.

folder = tempfile.TemporaryDirectory()
model = Gleaner(f"{folder.name}/animals", epochs=5, hidden=0)
model.fit(texts[:500], tags[:500], test=(texts[500:], tags[500:]))
print(f"P@1 of the run {model.finished['p_at_1']:.3f}")

# ---- 3. Ask it -----------------------------------------------------------------------------------

for label, probability in model.predict(["A hoot at night"], k=2)[0]:
    print(f"{label}: {100 * probability:.1f} %")
for word, part in model.explain("A hoot at night", "owl"):
    print(f"  because of {word}: {part:+.2f}")
print(f"P@1 {model.score(texts[500:], tags[500:]):.3f}, "
      f"P@2 {model.precision_at_k(texts[500:], tags[500:], 2):.3f}")
matrix = model.top_k(texts[500:], k=3)  # scipy CSR, examples x labels
assert matrix.shape == (100, len(model.model.label_names)) and matrix.nnz == 300

# ---- 4. Train on, with more examples and a tag that is new ---------------------------------------

new = [f"a {word} on the ice, number {i}" for i in range(40) for word in ("penguin", "waddling")]
model.partial_fit(new + texts[:80], [["penguin", "does not fly"]] * 80 + tags[:80], epochs=5)

# ---- 5. Keep it: one file with its words, for any program ----------------------------------------

model.save(f"{folder.name}/animals.safetensors")
kept = Model.load(f"{folder.name}/animals.safetensors")
assert kept.predict(["A hoot at night"]) == model.predict(["A hoot at night"])

# ---- What a test looks at ------------------------------------------------------------------------

assert model.score(texts[500:], tags[500:]) > 0.9
assert {label for label, _ in kept.predict(["the hoot of an owl"], k=2)[0]} == {"owl", "flies"}
assert "penguin" in kept.label_names
