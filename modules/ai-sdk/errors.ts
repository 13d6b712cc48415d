/** The errors of the AI SDK's packages as failures of our taxonomy. */
import {
  classifyLLMError,
  errorMessage,
  errorName,
  isObject,
  type JsonObject,
  LLMError,
  toLLMError,
} from "preamp/base";
import { connectionError } from "preamp/provider";
import { parsed } from "./names.ts";
import type { Vendor } from "./vendor.ts";

/** Maximum code units of a body that is no JSON. */
const MAX_BODY_CHARS = 300;
/** Maximum code units of a server's words; some repeat the whole request. */
const MAX_TEXT_CHARS = 2000;

/** Statuses of the words that vendors put in errors of a stream, or in answers with status 200. */
const STATUS: readonly (readonly [RegExp, number])[] = [
  [/overloaded|unavailable/i, 529],
  [/rate_?limit|resource_exhausted|too_many/i, 429],
  [/authentication|unauthenticated|invalid_api_key/i, 401],
  [/permission/i, 403],
  [/billing|insufficient_quota/i, 402],
  [/timeout|deadline/i, 504],
  [/invalid_request|invalid_argument|context_length/i, 400],
];

/** Returns the failure of a call. */
export function toError(error: unknown, vendor: Pick<Vendor, "classify">): LLMError {
  if (error instanceof LLMError) return error;
  const cause = field(error, "cause");
  const names = `${errorName(error)} ${errorName(cause)}`;
  const status = Number(field(error, "statusCode") ?? 0);
  const stated = statedBy(error) ?? statedBy(cause);
  if (isObject(field(error, "responseBody")) && !stated) return unreadable(error); // the package takes it for a 500
  if (stated !== undefined || status >= 400) return ofServer(error, status, stated, vendor);
  if (names.includes("NotCapable")) return connectionError(rootOf(error), "Cannot reach the API");
  if (error instanceof TypeError && /header/i.test(error.message)) {
    const fact = "a name or value in headers has characters that HTTP does not allow";
    return new LLMError("ConfigurationError", `Cannot send the request: ${fact}`, { cause: error });
  }
  if (names.includes("AI_TypeValidation")) { // within a stream, the package does not wrap it
    const type = errorName(error) === "AI_TypeValidationError" ? "StreamError" : "InvalidRequestError";
    return unreadable(error, type);
  }
  if (/AI_(JSONParse|InvalidResponseData|NoContentGenerated|EmptyResponseBody)/.test(names)) {
    return new LLMError("StreamError", "Cannot read the answer: it is broken", { cause: nameOf(error) });
  }
  if (cause instanceof Error || error instanceof TypeError) {
    return connectionError(rootOf(error), "Cannot reach the API");
  }
  return toLLMError(error);
}

/** Returns the failure of an answer in another form, with the first thing that is wrong with it. */
function unreadable(error: unknown, type: LLMError["type"] = "InvalidRequestError"): LLMError {
  const issues = field(rootOf(error), "issues");
  const [{ path = [], message = "" } = {}] = Array.isArray(issues) ? issues : [];
  const place = [path].flat().join(".");
  const fact = place === "" ? "" : `, at ${place}: ${String(message).slice(0, MAX_BODY_CHARS)}`;
  const text = `Cannot read the answer: it has not the form of this API${fact}; check base_url`;
  return new LLMError(type, text, { cause: nameOf(error) });
}

/** Returns the failure that a server stated; without a status, such as in a stream, its words decide. */
function ofServer(
  error: unknown,
  known_status: number,
  stated: JsonObject = {},
  { classify }: Pick<Vendor, "classify">,
): LLMError {
  const { type, code, status } = stated;
  const words = [type, code, status, stated.message].filter((value) => typeof value === "string").join(" ");
  const own = [code, status].map(Number).find((value) => value >= 400 && value < 600);
  const statusCode = known_status >= 400
    ? known_status
    : own ?? STATUS.find(([pattern]) => pattern.test(words))?.[1] ?? 500;
  const unstated = bodyText(error) ?? (errorMessage(error) || `status ${statusCode}`);
  const hint = statusCode === 404 ? "; check base_url: most servers need a path such as /v1" : "";
  const message = messageOf(stated) ?? `${unstated}${hint}`;
  const headers = field(error, "responseHeaders");
  const { type: known, ...facts } = classify?.(statusCode, message, stated) ?? {};
  const name = known ??
    (hint !== "" && messageOf(stated) === undefined ? "InvalidRequestError" : undefined) ??
    (statusCode === 409 ? "ProviderUnavailableError" : classifyLLMError(statusCode, words));
  const is_final = isObject(headers) && headers["x-should-retry"] === "false";
  const { retry_after } = toLLMError({ message, responseHeaders: headers });
  return new LLMError(name, message, {
    cause: nameOf(error),
    status_code: statusCode,
    ...facts,
    retry_after: facts.retry_after ?? retry_after,
    ...(is_final ? { retryable: false } : {}),
  });
}

function messageOf({ message, metadata }: JsonObject): string | undefined {
  const raw = isObject(metadata) && typeof metadata.raw === "string" ? `: ${metadata.raw}` : ""; // OpenRouter's
  const text = typeof message === "string" ? message : message && JSON.stringify(message);
  return text ? `${text}${raw}` : undefined;
}

function bodyText(error: unknown): string | undefined {
  const body = String(field(error, "responseBody") ?? "").trim();
  return body === "" ? undefined : body.slice(0, MAX_BODY_CHARS);
}

/** Returns the error that the body of an answer or a chunk of a stream states; undefined without one. */
function statedBy(error: unknown): JsonObject | undefined {
  const body = parsed(field(error, "responseBody")) ?? field(error, "value") ?? field(error, "data");
  for (const value of [body, error instanceof Error ? undefined : error]) {
    const whole = Array.isArray(value) ? value[0] : value;
    const inner = field(whole, "error") ?? field(field(whole, "response"), "error");
    if (isObject(inner)) return inner;
    if (typeof inner === "string") return { message: inner };
    if (isObject(whole) && typeof whole.message === "string") return whole;
  }
  return undefined;
}

/** What a server says about a request that it refused. */
export interface StatedError {
  readonly status: number;
  readonly code: string | undefined;
  /** Place in the request. */
  readonly param: string | undefined;
  /** All its words. */
  readonly text: string;
}

/** Returns what a server says about a refused request; the status is 0 for any other error. */
export function statedError(error: unknown): StatedError {
  const { code, param, message, details, metadata } = statedBy(error) ?? {};
  const raw = field(metadata, "raw"); // of the model's vendor (OpenRouter)
  const words = [code, message, details, raw].flatMap((value) =>
    typeof value === "string" ? value : value ? JSON.stringify(value) : []
  );
  return {
    status: Number(field(error, "statusCode") ?? 0),
    code: typeof code === "string" ? code : undefined,
    param: typeof param === "string" && param !== "" ? param : undefined,
    text: (words.join(" ") || String(field(error, "responseBody") ?? "")).slice(0, MAX_TEXT_CHARS),
  };
}

/** Returns the name of a package's error, which has the whole request and answer in it. */
function nameOf(error: unknown): string {
  return errorName(error) || "error of the server";
}

/** Returns the innermost cause: the outer errors have the whole request in them. */
function rootOf(error: unknown): unknown {
  let root = error;
  for (let cause = field(root, "cause"); cause instanceof Error; cause = field(root, "cause")) root = cause;
  return root;
}

function field(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? (value as JsonObject)[name] : undefined;
}
