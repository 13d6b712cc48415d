/** Checks bodies and queries against their schemas and says what is wrong as our errors do. */
import type * as z from "zod";
import { didYouMean } from "../../text/did_you_mean.ts";
import { documentError } from "../../plan/check/findings.ts";
import { describe, formatPath, type Path } from "../../plan/value_path.ts";
import type { ErrorDetail, PreampError } from "../../sdk/errors.ts";
import { isObject } from "../../sdk/json.ts";

type Schemas = typeof import("../schemas.ts");
/** Names of request bodies. */
export type BodyName = keyof Schemas["BODIES"];
/** Names of queries. */
export type QueryName = keyof Schemas["QUERIES"];
/** Names of answers. */
export type AnswerName = keyof Schemas["ANSWERS"];
/** What a body is after it was checked. */
export type Body<Name extends BodyName> = z.output<Schemas["BODIES"][Name]>;
/** What a query is after it was checked. */
export type Query<Name extends QueryName> = z.output<Schemas["QUERIES"][Name]>;

let loading: Promise<Schemas> | undefined;

/** Resolves to the schemas; loads them, and zod, the first time. */
export function loadSchemas(): Promise<Schemas> {
  return loading ??= import("../schemas.ts");
}

/**
 * Resolves to a body of the named shape.
 *
 * @throws {PreampError} `request_invalid` with every finding; a name within two letters of a known one is named.
 */
export async function checkBody<Name extends BodyName>(name: Name, value: unknown): Promise<Body<Name>> {
  const { BODIES } = await loadSchemas();
  // The table's entry for Name has Name's output; indexing loses the connection.
  return check(BODIES[name] as unknown as z.ZodType<Body<Name>>, value, "the request body");
}

/** Parameters that are whole numbers where they occur. */
const NUMERIC: ReadonlySet<string> = new Set(["limit", "after"]);
/** Queries whose cursor is a number. */
const NUMERIC_CURSOR: ReadonlySet<QueryName> = new Set<QueryName>(["EventsQuery", "MessagesQuery"]);

/**
 * Resolves to the query of a URL, in the named shape. Without a query no schema is loaded.
 *
 * @throws {PreampError} `request_invalid` for unknown parameters, one given twice, and wrong values.
 */
export async function checkQuery<Name extends QueryName>(name: Name, url: string): Promise<Query<Name>> {
  const start = url.indexOf("?");
  if (start === -1) return {} as Query<Name>; // every parameter of every query is optional
  const given: Record<string, unknown> = Object.create(null);
  for (const [key, value] of new URLSearchParams(url.slice(start + 1))) {
    if (key in given) throw twice(key);
    const numeric = NUMERIC.has(key) || (key === "cursor" && NUMERIC_CURSOR.has(name));
    given[key] = numeric ? wholeNumber(value) : value;
  }
  const { QUERIES } = await loadSchemas();
  return check(QUERIES[name] as unknown as z.ZodType<Query<Name>>, { ...given }, "the query"); // as above
}

/** Returns the number that text of at most 15 digits is, else the text itself, which no number schema takes. */
export function wholeNumber(text: string): number | string {
  return /^[0-9]{1,15}$/.test(text) ? Number(text) : text;
}

function twice(key: string): PreampError {
  const message = `Cannot read ${key}: it may be given once: received it twice`;
  return documentError("request_invalid", "the query", [{ path: key, message }]);
}

function check<T>(schema: z.ZodType<T>, value: unknown, what: string): T {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const known = knownKeys(schema);
  const details = result.error.issues.flatMap((issue) => toDetails(issue, value, known));
  throw documentError("request_invalid", what, details, result.error);
}

function toDetails(issue: z.core.$ZodIssue, root: unknown, known: (path: Path) => string[]): ErrorDetail[] {
  const path = issue.path.filter((step) => typeof step !== "symbol"); // JSON has no symbols
  if (issue.code === "unrecognized_keys") {
    return issue.keys.map((key) => {
      const place = formatPath([...path, key]);
      const detail: ErrorDetail = { path: place, message: `Cannot read ${place}: there is no such field` };
      const meant = didYouMean(key, known(path));
      return meant === undefined ? detail : { ...detail, hint: `did you mean ${JSON.stringify(meant)}?` };
    });
  }
  const place = formatPath(path);
  const received = describe(valueAt(root, path));
  return [{
    path: place,
    message: `Cannot read ${place || "the document"}: ${factOf(issue)}: received ${received}`,
  }];
}

/** Returns what a value must be, in our words; zod's own where a schema brought its own error. */
function factOf(issue: z.core.$ZodIssue): string {
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

/** Returns a function from the place of an object to the keys its schema knows. */
function knownKeys(schema: z.ZodType): (path: Path) => string[] {
  return (path) => {
    let here: unknown = schema;
    for (const step of path) here = shapeOf(here)[String(step)];
    return Object.keys(shapeOf(here));
  };
}

/** Returns the fields of an object schema, through its wrappers; none for another schema. */
function shapeOf(schema: unknown): Record<string, unknown> {
  for (let here = schema; isObject(here) && isObject(here.def); here = here.def.innerType) {
    if (isObject(here.def.shape)) return here.def.shape;
  }
  return {};
}
