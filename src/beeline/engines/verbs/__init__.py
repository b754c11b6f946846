"""Verbs: all that is ever done to the rows of a shard, and to what lies beside them, by name.

A verb is a function of a module. It takes a shard, arrays with an entry for each of its rows, and small things by name;
it changes none of them (but memory that is given to it, as `out`), and knows nothing else. `products` meet the
features, `values` ask a loss, `columns` look only at what lies beside the rows.
"""
