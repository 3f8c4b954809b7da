"""The commands and their help. Everything heavy is imported by the command that needs it."""

import sys
from typing import Any

import typer

from quipu.cli import (
    analysing,
    benching,
    checking,
    client_commands,
    demo_command,
    devnet_commands,
    ledger_commands,
    member_commands,
    node_commands,
    offline_commands,
    order_commands,
    secret_commands,
    store_commands,
)

HELP_OPTIONS = ["-h", "--help"]
AN_ID = "9f2c…:0"  # 64 hex digits in truth

app = typer.Typer(
    name="quipu",
    help="A replicated, tamper-evident, append-only ledger.",
    epilog="Example: `quipu run --data-dir var` starts a node; a second terminal: `quipu doctor`.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # rendering help with rich costs 100 ms at every --help
    context_settings={"help_option_names": HELP_OPTIONS},
)
config = typer.Typer(
    help="Settings and where they come from.",
    epilog="Example: `quipu config show --origin`",
    no_args_is_help=True,
    rich_markup_mode=None,
)

app.command("run", epilog="Example: `quipu run --data-dir var --api-listen 127.0.0.1:8470`")(
    node_commands.run
)
app.command("init", epilog="Example: `quipu init --data-dir var --name n1`")(node_commands.init)
app.command("invite", epilog="Example: `quipu invite --data-dir var --out cluster.invitation`")(
    node_commands.invite
)
app.command("join", epilog="Example: `quipu join cluster.invitation --data-dir var --name n4`")(
    node_commands.join
)
app.command("doctor", epilog="Example: `quipu doctor --data-dir var`")(node_commands.doctor)
config.command("show", epilog="Example: `quipu config show --origin --json`")(node_commands.show)
app.add_typer(config, name="config")

app.command(
    "submit", epilog="Example: `quipu submit '{\"order\": 7}' --stream orders --wait read`"
)(ledger_commands.submit)
app.command("get", epilog=f"Example: `quipu get {AN_ID}`")(ledger_commands.get)
app.command("list", epilog="Example: `quipu list --stream orders -n 5 -o ndjson`")(
    ledger_commands.list_
)
app.command(
    "follow", epilog="Example: `quipu follow --stream orders --from start --consumer billing`"
)(ledger_commands.follow)
app.command("proof", epilog=f"Example: `quipu proof {AN_ID} --out order.quipu`")(
    ledger_commands.proof
)
app.command("verify", epilog="Example: `quipu verify order.quipu --genesis var/genesis`")(
    offline_commands.verify
)
app.command("explain", epilog=f"Example: `quipu explain {AN_ID}`")(ledger_commands.explain)
app.command("status", epilog=f"Example: `quipu status`, or `quipu status {AN_ID} --wait 10`")(
    ledger_commands.status
)
app.add_typer(member_commands.members, name="members")
app.command("query", epilog="Example: `quipu query frontier --timeout 3`")(ledger_commands.query)
app.command("leave", epilog="Example: `quipu leave --data-dir var`")(store_commands.leave)
app.command("drain", epilog="Example: `quipu drain --data-dir var`")(store_commands.drain)
app.command("reload", epilog="Example: `quipu reload --data-dir var`")(store_commands.reload)
app.command("log-level", epilog="Example: `quipu log-level debug --data-dir var`")(
    store_commands.log_level
)
app.command("keys", epilog="Example: `quipu keys --data-dir var --json`")(store_commands.keys)
app.command("export", epilog="Example: `quipu export dumps/n1 --data-dir var`")(
    store_commands.export
)
app.command("check", epilog="Example: `quipu check --format nagios`")(checking.check)

app.command("bench", epilog="Example: `quipu bench --seconds 10 --connections 64 --wait read`")(
    benching.bench
)

consumers = typer.Typer(
    help="Named cursors that a node keeps for `quipu follow --consumer`.",
    epilog="Example: `quipu consumers list`",
    no_args_is_help=True,
    rich_markup_mode=None,
)
consumers.command("list", epilog="Example: `quipu consumers list -o json`")(
    ledger_commands.consumers_list
)
consumers.command("delete", epilog="Example: `quipu consumers delete billing`")(
    ledger_commands.consumers_delete
)
app.add_typer(consumers, name="consumers")

token = typer.Typer(
    help="Tokens of callers: who may do what.",
    epilog="Example: `quipu token new shop --scope entries:write:orders`",
    no_args_is_help=True,
    rich_markup_mode=None,
)
token.command("new", epilog="Example: `quipu token new shop --scope entries:write:orders`")(
    offline_commands.token_new
)
token.command("list", epilog="Example: `quipu token list`")(offline_commands.token_list)
token.command("revoke", epilog="Example: `quipu token revoke shop`")(offline_commands.token_revoke)
app.add_typer(token, name="token")

app.add_typer(devnet_commands.devnet, name="devnet")

secret = typer.Typer(
    help="Change the cluster's secret in steps: add, lead, drop; each counts at the next start.",
    epilog="Example: `quipu secret new next.key`",
    no_args_is_help=True,
    rich_markup_mode=None,
)
secret.command("new", epilog="Example: `quipu secret new next.key`")(secret_commands.new)
secret.command("add", epilog="Example: `quipu secret add next.key --data-dir var`")(
    secret_commands.add
)
secret.command("lead", epilog="Example: `quipu secret lead SHA256:4kQ --data-dir var`")(
    secret_commands.lead
)
secret.command("drop", epilog="Example: `quipu secret drop SHA256:9fT --data-dir var`")(
    secret_commands.drop
)
app.add_typer(secret, name="secret")

debug = typer.Typer(
    help="For reports of what went wrong.",
    epilog="Example: `quipu debug bundle report.tar.gz`",
    no_args_is_help=True,
    rich_markup_mode=None,
)
debug.command("bundle", epilog="Example: `quipu debug bundle report.tar.gz --data-dir var`")(
    secret_commands.bundle
)
app.add_typer(debug, name="debug")

store = typer.Typer(
    help="The store of a node of this machine.",
    epilog="Example: `quipu store stats --data-dir var`",
    no_args_is_help=True,
    rich_markup_mode=None,
)
store.command("stats", epilog="Example: `quipu store stats --data-dir var --json`")(
    store_commands.stats
)
store.command("verify", epilog="Example: `quipu store verify /backups/monday --signatures`")(
    store_commands.verify
)
store.command("scrub", epilog="Example: `quipu store scrub --data-dir var`")(store_commands.scrub)
store.command("backup", epilog="Example: `quipu store backup /backups/monday --data-dir var`")(
    store_commands.backup
)
store.command("restore", epilog="Example: `quipu store restore /backups/monday --data-dir var`")(
    store_commands.restore
)
store.command("repair", epilog="Example: `quipu store repair --data-dir var`")(
    store_commands.repair
)
store.command("erase", epilog="Example: `quipu store erase 5f0c…:0 --data-dir var`")(
    store_commands.erase
)
store.command("prune", epilog="Example: `quipu store prune --keep 90d --dry-run --data-dir var`")(
    store_commands.prune
)
store.command("compact", epilog="Example: `quipu store compact --data-dir var`")(
    store_commands.compact
)
app.add_typer(store, name="store")

app.command("analyse", epilog="Example: `quipu analyse dumps/n1 dumps/n2 --out report`")(
    analysing.analyse
)
dumps = typer.Typer(
    help="Dumps that `quipu export` wrote, beside each other.",
    epilog="Example: `quipu dumps diff dumps/n1 dumps/n2`",
    no_args_is_help=True,
    rich_markup_mode=None,
)
dumps.command("explain", epilog="Example: `quipu dumps explain 9f2c dumps/n1 dumps/n2`")(
    analysing.explain
)
dumps.command("diff", epilog="Example: `quipu dumps diff dumps/n1 dumps/n2`")(analysing.diff)
app.add_typer(dumps, name="dumps")

journal = typer.Typer(
    help="The one order of the cluster.",
    epilog="Example: `quipu journal status`",
    no_args_is_help=True,
    rich_markup_mode=None,
)
journal.command("status", epilog="Example: `quipu journal status -o json`")(
    order_commands.journal_status
)
journal.command("entries", epilog="Example: `quipu journal entries --after 100 -n 5`")(
    order_commands.journal_entries
)
journal.command("config", epilog="Example: `quipu journal config -o json`")(
    order_commands.journal_config
)
journal.command(
    "propose", epilog="Example: `quipu journal propose serializers n1 n2 n3 --data-dir var`"
)(store_commands.journal_propose)
journal.command("recover", epilog="Example: `quipu journal recover --data-dir var`")(
    store_commands.journal_recover
)
app.add_typer(journal, name="journal")

client = typer.Typer(
    help="Clients whose signed requests are executed exactly once, as SQL.",
    epilog="Example: `quipu client new --state app.state`",
    no_args_is_help=True,
    rich_markup_mode=None,
)
client.command(
    "new", epilog="Example: `quipu client new --state app.state --allow 'stock*=read,write'`"
)(client_commands.new)
client.command("list", epilog="Example: `quipu client list`")(client_commands.every)
client.command("show", epilog="Example: `quipu client show 1`")(client_commands.show)
client.command("rights", epilog="Example: `quipu client rights 1 --allow 'stock*=read,write'`")(
    client_commands.rights
)
client.command("remove", epilog="Example: `quipu client remove 1`")(client_commands.remove)
client.command(
    "execute",
    epilog="Example: `quipu client execute 'INSERT INTO stock VALUES (?)' nut --state app.state`",
)(client_commands.execute)
client.command("results", epilog="Example: `quipu client results --state app.state -o json`")(
    client_commands.results
)
app.add_typer(client, name="client")
app.command("sql", epilog="Example: `quipu sql 'SELECT item FROM stock WHERE n > ?' 3 --linear`")(
    client_commands.sql
)
app.command("executor", epilog="Example: `quipu executor -o json`")(client_commands.executor)

sequence = typer.Typer(
    help="Numbers that a cluster gives out one after the other.",
    epilog="Example: `quipu sequence publish invoices 'the text of invoice 7'`",
    no_args_is_help=True,
    rich_markup_mode=None,
)
sequence.command("show", epilog="Example: `quipu sequence show invoices --linear`")(
    order_commands.sequence_show
)
sequence.command("publish", epilog="Example: `quipu sequence publish invoices 'invoice 7'`")(
    order_commands.sequence_publish
)
sequence.command("lock", epilog="Example: `quipu sequence lock invoices --count 10`")(
    order_commands.sequence_lock
)
sequence.command("release", epilog="Example: `quipu sequence release invoices --token 17`")(
    order_commands.sequence_release
)
app.add_typer(sequence, name="sequence")

app.command("demo", epilog="Example: `quipu demo --seconds 60`")(demo_command.demo)

errors = typer.Typer(
    help="What the problem codes mean.",
    epilog="Example: `quipu errors lookup key-reused`",
    no_args_is_help=True,
    rich_markup_mode=None,
)
errors.command("lookup", epilog="Example: `quipu errors lookup key-reused`")(
    offline_commands.lookup
)
app.add_typer(errors, name="errors")


def main() -> None:
    if not show_help(sys.argv[1:]):
        app(prog_name="quipu")
    sys.exit(0)


def show_help(arguments: list[str]) -> bool:
    """Whether these asked for nothing but help. Parsed in the usual way, the names before `--help`
    cost 90 ms: typer loads pydantic for them."""
    *names, last = arguments or [""]
    if last not in HELP_OPTIONS:
        return False
    command: Any = typer.main.get_command(app)
    context = typer.Context(command, info_name="quipu", **command.context_settings)
    for name in names:
        command = getattr(command, "commands", {}).get(name)
        if command is None:
            return False
        context = typer.Context(command, context, name, **command.context_settings)
    print(command.get_help(context))
    return True
