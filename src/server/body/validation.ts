/** Validates bodies and queries against their schemas; reports findings as `request_invalid`. */
import type * as z from "zod";
import { didYouMean } from "../../sdk/findings.ts";
import type { RequestContext } from "../context.ts";
import { documentError } from "../../plan/check/findings.ts";
import { describe, formatPath, type Path } from "../../sdk/value_path.ts";
import { readModelName } from "../../plan/check/field_checks.ts";
import type { RunRequest } from "../../runs/types.ts";
import type { ErrorDetail, PreampError } from "../../sdk/errors.ts";
import { isObject } from "../../sdk/json.ts";

type Schemas = typeof import("../schemas/requests.ts");
/** Name of a request body. */
export type BodyName = keyof Schemas["BODIES"];
/** Name of a query. */
export type QueryName = keyof Schemas["QUERIES"];
/** A validated body. */
export type Body<Name extends BodyName> = z.output<Schemas["BODIES"][Name]>;
/** A validated query. */
export type Query<Name extends QueryName> = z.output<Schemas["QUERIES"][Name]>;

let loading: Promise<Schemas> | undefined;

/** Loads the schemas, and with them zod, on the first call. */
function loadSchemas(): Promise<Schemas> {
  return loading ??= import("../schemas/requests.ts");
}

/**
 * Validates a body against the named schema.
 *
 * @throws {PreampError} `request_invalid` with every finding; suggests the known name for a misspelt one.
 */
export async function checkBody<Name extends BodyName>(name: Name, value: unknown): Promise<Body<Name>> {
  const { BODIES } = await loadSchemas();
  // The table's entry for Name has Name's output; indexing loses the connection.
  return check(BODIES[name] as unknown as z.ZodType<Body<Name>>, value, "the request body");
}

/** Parameters whose values are whole numbers in every query. */
const NUMERIC: ReadonlySet<string> = new Set(["limit", "after", "seq"]);
/** Queries whose cursor is a whole number. */
const NUMERIC_CURSOR: ReadonlySet<QueryName> = new Set<QueryName>([
  "EventsQuery",
  "MessagesQuery",
  "RequestsQuery",
]);

/**
 * Validates the query of a URL against the named schema. Without a query, no schema is loaded.
 *
 * @throws {PreampError} `request_invalid` for unknown or duplicate parameters and invalid values.
 */
export async function checkQuery<Name extends QueryName>(name: Name, url: string): Promise<Query<Name>> {
  const start = url.indexOf("?");
  if (start === -1) return {} as Query<Name>; // every parameter of every query is optional
  const parameters: Record<string, unknown> = Object.create(null);
  for (const [key, value] of new URLSearchParams(url.slice(start + 1))) {
    if (key in parameters) throw invalidParameter(key, "it must occur once: received it twice");
    const numeric = NUMERIC.has(key) || (key === "cursor" && NUMERIC_CURSOR.has(name));
    const parameter = numeric ? wholeNumber(value) : value;
    if (numeric && typeof parameter === "string") {
      const fact = `must be a whole number of at most 15 digits: received ${describe(value)}`;
      throw invalidParameter(key, fact);
    }
    parameters[key] = parameter;
  }
  const { QUERIES } = await loadSchemas();
  return check(QUERIES[name] as unknown as z.ZodType<Query<Name>>, { ...parameters }, "the query"); // as above
}

/** Name of the query of a list. */
type ListQuery = "EventsQuery" | "ListRunsQuery" | "MessagesQuery" | "PageQuery" | "RequestsQuery";

/**
 * Validates the query of a list.
 *
 * @throws {PreampError} `request_invalid` as {@link checkQuery}; also for a `limit` above the policy's
 * `max_page_limit`.
 */
export async function checkListQuery<Name extends ListQuery>(
  name: Name,
  context: RequestContext,
): Promise<Query<Name>> {
  const query = await checkQuery(name, context.request.url);
  const { limit }: { limit?: number } = query;
  const { max_page_limit } = context;
  if (limit === undefined || limit <= max_page_limit) return query;
  throw invalidParameter("limit", `must be at most ${max_page_limit}: received ${limit}`);
}

/**
 * Converts text of at most 15 digits to a number; returns other text unchanged, which no number schema
 * accepts.
 */
export function wholeNumber(text: string): number | string {
  return /^[0-9]{1,15}$/.test(text) ? Number(text) : text;
}

function invalidParameter(key: string, fact: string): PreampError {
  return documentError("request_invalid", "the query", [{
    path: key,
    message: `Cannot read ${key}: ${fact}`,
  }]);
}

function check<T>(schema: z.ZodType<T>, value: unknown, label: string): T {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const known = knownKeys(schema);
  const { issues } = result.error;
  // a misspelt or foreign field comes first: it may be why another one is missing
  const ordered = [...issues].sort((a, b) => Number(isForeign(b)) - Number(isForeign(a)));
  const details = ordered.flatMap((issue) => toDetails(issue, value, known));
  throw documentError("request_invalid", label, details, result.error);
}

function isForeign({ code }: z.core.$ZodIssue): boolean {
  return code === "unrecognized_keys";
}

/** Fields of other APIs of models → what to send instead. */
const INSTEAD: Readonly<Record<string, string>> = {
  stream: "send the header Accept: text/event-stream",
  messages: "send the new message as prompt; session_id continues a conversation",
  input: "send it as prompt",
  system: "send a plan with system",
  tools: "send a plan with tools",
};

function toDetails(issue: z.core.$ZodIssue, root: unknown, known: (path: Path) => string[]): ErrorDetail[] {
  const path = issue.path.filter((step) => typeof step !== "symbol"); // JSON has no symbols
  if (issue.code === "unrecognized_keys") {
    return issue.keys.map((key) => {
      const place = formatPath([...path, key]);
      const instead = path.length === 0 && Object.hasOwn(INSTEAD, key) ? `: ${INSTEAD[key]}` : "";
      const message = `Cannot read ${place}: there is no such field${instead}`;
      const meant = instead === "" ? didYouMean(key, known(path)) : undefined;
      return {
        path: place,
        message,
        ...meant !== undefined && { hint: `did you mean ${JSON.stringify(meant)}?` },
      };
    });
  }
  const place = formatPath(path);
  const received = describe(valueAt(root, path));
  return [{
    path: place,
    message: `Cannot read ${place || "the document"}: ${requirementOf(issue)}: received ${received}`,
  }];
}

/** Returns the requirement that a value violates, or the schema's own error message. */
function requirementOf(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case "invalid_type":
      return `must be ${NOUN[issue.expected] ?? `of type ${issue.expected}`}`;
    case "invalid_value":
      return `must be ${issue.values.length > 1 ? "one of " : ""}${
        issue.values.map((value) => JSON.stringify(value)).join(", ")
      }`;
    case "too_small":
      return issue.origin === "string" || issue.origin === "array"
        ? "must not be empty"
        : `must be ${issue.inclusive ? "at least" : "more than"} ${issue.minimum}`;
    case "too_big":
      return `must be ${issue.inclusive ? "at most" : "less than"} ${issue.maximum}`;
    default:
      return issue.message;
  }
}

const NOUN: Readonly<Record<string, string>> = {
  string: "text",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  object: "an object",
  array: "a list",
};

function valueAt(root: unknown, path: Path): unknown {
  let value = root;
  for (const step of path) {
    if (Array.isArray(value) && typeof step === "number") value = value[step];
    else if (isObject(value) && Object.hasOwn(value, step)) value = value[step];
    else return undefined;
  }
  return value;
}

/** Returns a function that maps the path of an object to the keys in its schema. */
function knownKeys(schema: z.ZodType): (path: Path) => string[] {
  return (path) => {
    let here: unknown = schema;
    for (const step of path) here = shapeOf(here)[String(step)];
    return Object.keys(shapeOf(here));
  };
}

/**
 * Returns the fields of an object schema, unwrapping optional and refined schemas; empty for other schemas.
 */
function shapeOf(schema: unknown): Record<string, unknown> {
  for (let here = schema; isObject(here) && isObject(here.def); here = here.def.innerType) {
    if (isObject(here.def.shape)) return here.def.shape;
  }
  return {};
}

/** A checked body of `POST /v1/runs`. */
type CheckedRequest = RunRequest & { background?: boolean };

/** Field → check of a value that needs no schema. */
const COMMON_FIELDS: Readonly<Record<string, (value: unknown) => boolean>> = {
  prompt: (value) => typeof value === "string" && /\S/.test(value),
  plan: (value) => typeof value === "string" || isObject(value),
  plan_ref: isText,
  model: (value) => typeof value === "string" && readModelName(value) !== null,
  session_id: isText,
  background: (value) => typeof value === "boolean",
  metadata: isObject,
};

/**
 * Returns a copy of a valid `POST /v1/runs` body that has only common fields; undefined for any other value,
 * which zod then checks. perf: five times as fast as zod.
 */
export function validateCommonRequest(value: unknown): CheckedRequest | undefined {
  if (!isObject(value) || !Object.hasOwn(value, "prompt")) return undefined;
  for (const key of Object.keys(value)) {
    const isValid = Object.hasOwn(COMMON_FIELDS, key) ? COMMON_FIELDS[key] : undefined;
    if (isValid === undefined || !isValid(value[key])) return undefined;
  }
  if (Object.hasOwn(value, "plan") && Object.hasOwn(value, "plan_ref")) return undefined;
  return { ...value } as unknown as CheckedRequest; // checked above, field by field
}

function isText(value: unknown): boolean {
  return typeof value === "string" && value !== "";
}
