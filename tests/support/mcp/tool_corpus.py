"""Corpus of tools for searches: what twenty-four services might list, and questions with the tools that answer them."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from smg_node.core.generation.tool_serving import ListedTool
from smg_node.mcp.search.searched_tool import SearchedTool

# Service: how it spells names, what it is, and its things, each with what it is in other words.
_SERVICES: Final[Mapping[str, tuple[str, str, Mapping[str, str]]]] = {
    "github": (
        "snake",
        "source code hosting",
        {
            "issue": "a bug report or feature wish of a repository",
            "pull_request": "a proposed change of code that is under review",
            "release": "a tagged version with notes and downloads",
        },
    ),
    "jira": (
        "camel",
        "project tracking",
        {
            "ticket": "a piece of work with assignee, priority and status",
            "sprint": "a period of two weeks for which work is planned",
            "epic": "a large goal that groups many pieces of work",
        },
    ),
    "slack": (
        "snake",
        "team chat",
        {
            "channel": "a room where a team talks",
            "message": "a text that somebody posts for colleagues",
            "reminder": "a note that comes up again at a given time",
        },
    ),
    "gmail": (
        "kebab",
        "electronic mail",
        {
            "draft": "an email that is not sent yet",
            "label": "a tag that sorts the inbox",
            "filter": "a rule for incoming email",
        },
    ),
    "calendar": (
        "camel",
        "appointments",
        {
            "event": "a meeting or appointment with start, end and guests",
            "availability": "free and busy times of a person",
            "calendar": "a set of appointments that can be shared",
        },
    ),
    "drive": (
        "snake",
        "cloud file storage",
        {
            "document": "a text file that several people edit together",
            "folder": "a place that holds other files",
            "permission": "who may read or edit a shared file",
        },
    ),
    "salesforce": (
        "camel",
        "customer relations",
        {
            "lead": "a person who might become a customer",
            "opportunity": "a possible deal with an amount and a stage",
            "account": "a company that buys from us",
        },
    ),
    "stripe": (
        "snake",
        "payments",
        {
            "invoice": "a bill for a customer with lines and a due date",
            "refund": "money given back for a charge",
            "subscription": "a plan that is paid again every month",
        },
    ),
    "kubernetes": (
        "kebab",
        "container orchestration",
        {
            "pod": "a running group of containers",
            "deployment": "replicas of an application that are rolled out",
            "secret": "credentials that containers mount",
        },
    ),
    "aws": (
        "snake",
        "cloud infrastructure",
        {
            "instance": "a virtual machine of EC2",
            "bucket": "a store of objects in S3",
            "function": "a serverless Lambda that runs on demand",
        },
    ),
    "postgres": (
        "snake",
        "relational database",
        {
            "table": "rows and columns in SQL",
            "index": "a structure that makes queries fast",
            "role": "a database user with grants",
        },
    ),
    "grafana": (
        "camel",
        "monitoring",
        {
            "dashboard": "panels that plot metrics over time",
            "alert": "a rule that pages somebody when a metric is too high",
            "datasource": "where metrics and logs are read from",
        },
    ),
    "zendesk": (
        "snake",
        "customer support",
        {
            "conversation": "a customer's question and all answers to it",
            "macro": "a prepared reply of support agents",
            "satisfaction_rating": "how content a customer was",
        },
    ),
    "shopify": (
        "camel",
        "online shop",
        {
            "product": "an article with price, variants and stock",
            "order": "what a customer bought and where it is shipped",
            "discount": "a coupon code that lowers a price",
        },
    ),
    "hubspot": (
        "kebab",
        "marketing",
        {
            "campaign": "a series of newsletters and advertisements",
            "contact": "a person with phone number and address",
            "form": "fields on a web page that visitors fill in",
        },
    ),
    "notion": (
        "snake",
        "knowledge base",
        {
            "page": "an article of the wiki",
            "comment": "a remark on a part of an article",
            "database": "a table of articles with properties",
        },
    ),
    "spotify": (
        "camel",
        "music",
        {
            "playlist": "songs in an order of one's own",
            "track": "a song with artist and album",
            "podcast": "a show of spoken episodes",
        },
    ),
    "travel": (
        "snake",
        "trips",
        {
            "flight": "a plane connection between two airports",
            "hotel": "a place to stay overnight with rooms and rates",
            "rental_car": "a vehicle that is hired for days",
        },
    ),
    "bank": (
        "kebab",
        "money",
        {
            "transaction": "a movement of money with a payee",
            "standing_order": "a transfer that repeats every month",
            "card": "a debit or credit card that can be blocked",
        },
    ),
    "hr": (
        "snake",
        "personnel",
        {
            "employee": "a person on the payroll with manager and salary",
            "vacation_request": "days off that a manager approves",
            "job_posting": "an open position that applicants see",
        },
    ),
    "home": (
        "camel",
        "smart home",
        {
            "light": "a lamp that can be dimmed and coloured",
            "thermostat": "the heating's target temperature in a room",
            "scene": "settings of many devices that are switched together",
        },
    ),
    "health": (
        "snake",
        "fitness",
        {
            "workout": "a training with duration and heart rate",
            "meal": "food that was eaten with calories",
            "sleep_record": "hours of rest in a night",
        },
    ),
    "maps": (
        "camel",
        "geography",
        {
            "route": "directions between two places by car, bicycle or foot",
            "place": "a restaurant, shop or sight with opening hours",
            "geofence": "an area that tells when a device enters it",
        },
    ),
    "sentry": (
        "kebab",
        "error tracking",
        {
            "exception": "a crash of an application with its stack trace",
            "project": "an application whose crashes are collected",
            "deploy": "a version that was brought to production",
        },
    ),
}
_ACTIONS: Final[Mapping[str, str]] = {
    "create": "Creates a new {thing}: {what}. Returns its id.",
    "get": "Returns one {thing} by id, with all of its fields ({what}).",
    "list": "Lists every {thing} page by page, newest first; {what}.",
    "update": "Changes fields of an existing {thing}, which is {what}.",
    "delete": "Removes a {thing} for good; this cannot be undone. It is {what}.",
    "search": "Finds each {thing} that matches words or filters; {what}.",
}
_PARAMETERS: Final[Mapping[str, Mapping[str, str]]] = {
    "create": {"name": "How it is called", "description": "A longer text about it"},
    "get": {"id": "Which one"},
    "list": {"page": "Number of the page", "per_page": "Entries on a page, 100 at most"},
    "update": {"id": "Which one", "fields": "What to change, by name"},
    "delete": {"id": "Which one", "force": "Whether to skip the question"},
    "search": {"query": "Words to look for", "since": "Only what is newer than this day"},
}
# Server, name, description, parameters.
_SPECIAL: Final = (
    ("github", "merge_pull_request", "Merges an approved change into the main branch", "method"),
    ("github", "fork_repository", "Copies a repository to another owner", "owner"),
    ("github", "rerun_failed_jobs", "Starts the failed jobs of a CI workflow again", "run_id"),
    ("jira", "assignToMe", "Makes the caller responsible for a piece of work", "key"),
    ("slack", "set_status", "Sets the emoji and text beside one's own name", "emoji"),
    ("slack", "upload_snippet", "Shares code with syntax highlighting", "language"),
    ("gmail", "send-email", "Sends an email with subject, body and attachments", "recipients"),
    ("gmail", "unsubscribe", "Leaves a mailing list or newsletter", "sender"),
    ("calendar", "findMeetingTime", "Proposes slots at which all guests are free", "guests"),
    ("drive", "convert_to_pdf", "Exports a document as PDF", "file_id"),
    ("drive", "restore_version", "Brings an earlier revision of a file back", "revision"),
    ("stripe", "charge_card", "Takes a payment from a saved card", "amount"),
    ("kubernetes", "scale-replicas", "Changes how many copies of an application run", "count"),
    ("kubernetes", "read-logs", "Prints the last log lines of a container", "lines"),
    ("kubernetes", "drain-node", "Moves all workloads away from a machine", "node"),
    ("aws", "estimate_cost", "Forecasts the bill of the month by service", "month"),
    ("postgres", "run_query", "Executes a SQL statement and returns its rows", "sql"),
    ("postgres", "explain_plan", "Shows how a statement would be executed, and its cost", "sql"),
    ("postgres", "take_backup", "Dumps the whole database to a file", "target"),
    ("grafana", "silenceAlert", "Mutes notifications of a rule for some hours", "hours"),
    ("zendesk", "escalate", "Hands a difficult case to second-level support", "reason"),
    ("shopify", "adjustInventory", "Sets how many pieces of an article are in stock", "quantity"),
    ("shopify", "printShippingLabel", "Makes the label for a parcel", "carrier"),
    ("spotify", "pausePlayback", "Stops the music on a device", "device"),
    ("travel", "check_in", "Gets the boarding pass for a booked flight", "booking"),
    ("travel", "exchange_rate", "Converts an amount from one currency into another", "currency"),
    ("bank", "block-card", "Locks a lost or stolen card at once", "card"),
    ("bank", "get-balance", "Returns how much money is on an account", "iban"),
    ("hr", "run_payroll", "Computes and pays the salaries of a month", "month"),
    ("home", "lockDoor", "Locks the front door", "door"),
    ("home", "startVacuum", "Lets the robot clean the floor of a room", "room"),
    ("health", "log_weight", "Notes how many kilograms a person weighs", "kilograms"),
    ("maps", "weatherForecast", "Temperature, rain and wind of the next days at a place", "days"),
    ("maps", "elevationProfile", "Heights along a path", "path"),
    ("sentry", "resolve-exception", "Marks a crash as fixed in a version", "version"),
    ("sentry", "find-suspect-commit", "Tells which commit probably broke it", "exception"),
)
QUESTIONS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("report a bug in the repository", ("github/create_issue",)),
    ("merge the approved pull request", ("github/merge_pull_request",)),
    ("which pull requests are open", ("github/list_pull_request", "github/search_pull_request")),
    ("publish a new release with notes", ("github/create_release",)),
    ("restart the failed CI jobs", ("github/rerun_failed_jobs",)),
    ("assign the ticket to me", ("jira/assignToMe", "jira/updateTicket")),
    ("create sprint", ("jira/createSprint",)),
    ("change priority of a Jira ticket", ("jira/updateTicket",)),
    ("post a message to the team channel", ("slack/create_message",)),
    ("remind me tomorrow", ("slack/create_reminder",)),
    ("find messages in slack", ("slack/search_message",)),
    ("send an email with an attachment", ("gmail/send-email",)),
    ("rule for incoming mail", ("gmail/create-filter", "gmail/update-filter", "gmail/get-filter")),
    ("leave a newsletter", ("gmail/unsubscribe",)),
    ("when are all guests free for a meeting", ("calendar/findMeetingTime",)),
    ("schedule an appointment", ("calendar/createEvent",)),
    ("cancel a meeting", ("calendar/deleteEvent",)),
    ("export document as PDF", ("drive/convert_to_pdf",)),
    ("share a file with somebody", ("drive/create_permission", "drive/update_permission")),
    ("bring back an older version of a file", ("drive/restore_version",)),
    ("add a new lead to Salesforce", ("salesforce/createLead",)),
    ("deals by stage and amount", ("salesforce/searchOpportunity", "salesforce/listOpportunity")),
    ("refund a customer", ("stripe/create_refund",)),
    ("bill a customer", ("stripe/create_invoice",)),
    ("cancel monthly plan subscription", ("stripe/delete_subscription",)),
    ("scale application to five replicas", ("kubernetes/scale-replicas",)),
    ("container logs", ("kubernetes/read-logs",)),
    ("list running pods", ("kubernetes/list-pod",)),
    ("create S3 bucket", ("aws/create_bucket",)),
    ("start a virtual machine", ("aws/create_instance",)),
    ("what will the cloud bill be this month", ("aws/estimate_cost",)),
    ("run a SQL query", ("postgres/run_query",)),
    ("why is this SQL statement slow", ("postgres/explain_plan",)),
    ("backup the database", ("postgres/take_backup",)),
    ("mute an alert for two hours", ("grafana/silenceAlert",)),
    ("plot metrics on a new dashboard", ("grafana/createDashboard",)),
    ("how content are customers", ("zendesk/list_satisfaction_rating",)),
    ("make a coupon code", ("shopify/createDiscount",)),
    ("how many pieces are in stock", ("shopify/adjustInventory",)),
    ("stop the music", ("spotify/pausePlayback",)),
    ("find a flight between two airports", ("travel/search_flight",)),
    ("convert euros into another currency", ("travel/exchange_rate",)),
    ("my card was stolen", ("bank/block-card",)),
    ("account balance", ("bank/get-balance",)),
    ("request days off", ("hr/create_vacation_request",)),
    ("weather tomorrow", ("maps/weatherForecast",)),
    ("directions by bicycle", ("maps/searchRoute", "maps/createRoute", "maps/getRoute")),
    ("which commit caused the crash", ("sentry/find-suspect-commit",)),
    ("move or rename a file on disk", ("filesystem/move_file",)),
    ("add observations to entities of the knowledge graph", ("memory/add_observations",)),
)
"""Fifty questions, each with the tools of which one is to be found, as `server/name`."""


def made_tools() -> Iterator[SearchedTool]:
    """Yield the tools of all services."""
    for server, (style, topic, things) in _SERVICES.items():
        for thing, what in things.items():
            for action, description in _ACTIONS.items():
                spoken = thing.replace("_", " ")
                text = f"{description.format(thing=spoken, what=what)} Part of {topic}."
                name = _spelled(f"{action}_{thing}", style)
                yield _searched(server, name, text, _PARAMETERS[action])
    for server, name, description, parameter in _SPECIAL:
        yield _searched(server, name, description, {parameter: ""})


def _searched(server: str, name: str, text: str, parameters: Mapping[str, str]) -> SearchedTool:
    properties: dict[str, Any] = {
        each: {"type": "string", "description": description} if description else {"type": "string"}
        for each, description in parameters.items()
    }
    schema = {"type": "object", "properties": properties, "required": list(properties)[:1]}
    return SearchedTool(f"{server}__{name}", ListedTool(name, text, schema), server)


def _spelled(name: str, style: str) -> str:
    first, *rest = name.split("_")
    if style == "camel":
        return first + "".join(map(str.capitalize, rest))
    return ("-" if style == "kebab" else "_").join([first, *rest])
