"""The web console: pages for people, served on the HTTP door of a node, or alone beside any Kafka.

It is a client of the cluster, as the command line is: what it shows comes from `views` and `client`, brokers decide what its reader may do, and
no rule and no password is kept here.

How a page is added
    1. `console/pages/NAME.py` has `PAGE = Page(...)`: its address, its title, its place in the menu, and `show`, which is given an `Asked`
       (the query, a client of the reader's own, the watcher's last picture) and answers with `Shown(template, values)`.
    2. The template, `console/templates/NAME.html`, extends `layout.html` and fills `content`. Macros for tables, tiles, forms and notices are
       in `parts.html`. Whatever a value has that would not be seen, or would turn a line around, is written out by the rendering itself.
    3. A line in `console/pages/__init__.py`.
    4. What changes something is an action of the page: `actions={"delete": delete}`, sent by a form to the page's address and `/delete`, with
       the token that `form_token()` writes into every form. It answers with `Done(address, notice)`, or raises a `RopewalkError`, which is shown
       on the page it came from with what was filled in. `changes=False` says of an action that a console that only reads may take it, too.
    5. What goes on, as a live tail, is an event stream: `streams={"tail": tail}` is given the `Asked` and an `EventStream` that holds back.
    6. Tests: in `tests/console/` what the page says and refuses to a bare browser, in `tests/console/browser/` what a person does on it.
"""
