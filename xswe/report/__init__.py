"""Reports: one self-contained HTML page per result."""

# Pages of results, by the name of their class: the function of this room that makes the page, as ``module:name``. What it
# takes besides the result (``model``, ``settings``), its page shows. Verbs that return such a result have ``report=``.
OF_RESULTS = {
    "AlignedTexts": "aligned:aligned_page",
    "Comparison": "comparison:comparison_page",
    "Filtered": "pairs:filtered_page",
    "FoundInFiles": "terms:search_page",
    "MinedPairs": "pairs:mined_page",
    "Sweep": "comparison:sweep_page",
    "TermView": "terms:terms_page",
    "TrainResult": "training:result_page",
}
