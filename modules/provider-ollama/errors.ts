/** Maps errors of the server, and of the connection to it. */
import {
  classifyLLMError,
  isObject,
  type JsonObject,
  LLMError,
  type LLMErrorOptions,
  toLLMError,
  type ToolSpec,
} from "preamp/base";
import { connectionError } from "preamp/provider";

/** Maximum code units of a server's message. */
const MAX_MESSAGE_CHARS = 500;

const NOT_FOUND = /model ["']?([^"' ]+)["']? not found/i;
const TOO_LONG =
  /longer than the context length|exceeds? the (context length|available context size)|exceed_context_size/i;
/** The server dropped the user's message, because the request did not fit. */
const TRUNCATED = /no user query found/i;
const NO_MEMORY = /more system memory|out of memory/i;
/** Of a plan of Ollama.com. */
const USAGE_LIMIT = /usage limit/i;
const REFUSED = /refused|ECONNREFUSED/i;

/** Returns an error of the connection as an LLMError. */
export function toConnectionError(cause: unknown, url: string): LLMError {
  const fact = `Cannot reach Ollama at ${url}`;
  const failure = connectionError(cause, fact);
  if (!REFUSED.test(failure.message.slice(fact.length))) return failure;
  const hint = "start it with `ollama serve`, or set base_url or the variable OLLAMA_HOST";
  const message = `${fact}: nothing listens there; ${hint}`;
  return new LLMError("NetworkError", message, { cause, retryable: false });
}

/**
 * Returns an error that the server reported.
 *
 * @param status Status of the response; that of a stream has begun with 200.
 * @param body The body as text, or the value of `error`.
 */
export function toServerError(status: number, body: string, headers?: Headers): LLMError {
  const message = readMessage(body);
  const status_code = status < 400 ? 500 : status;
  const options: LLMErrorOptions = { status_code, cause: message };
  const [, model] = NOT_FOUND.exec(message) ?? [];
  if (model !== undefined) {
    const text = `Cannot find the model ${model} in Ollama: get it with \`ollama pull ${model}\``;
    return new LLMError("NotFoundError", text, options);
  }
  const text = message.slice(0, MAX_MESSAGE_CHARS);
  if (TOO_LONG.test(message) || TRUNCATED.test(message)) {
    return new LLMError("ContextLengthError", text, options);
  }
  if (NO_MEMORY.test(message)) {
    const hint = "choose a smaller model, or a smaller context_window";
    return new LLMError("ProviderUnavailableError", `${text}; ${hint}`, { ...options, retryable: false });
  }
  const type = USAGE_LIMIT.test(message) ? "QuotaExceededError" : classifyLLMError(status_code, message);
  return toLLMError({ name: type, message: text, headers }, options);
}

/** Returns the message of a body; that of the model's own server is JSON within the text. */
function readMessage(body: string): string {
  let message = body.trim();
  for (let depth = 0; depth < 3; depth++) {
    const error = parse(message)?.error;
    if (typeof error === "string") message = error;
    else if (isObject(error) && typeof error.message === "string") {
      const { message: text, type, n_prompt_tokens, n_ctx } = error;
      return n_ctx === undefined
        ? text
        : `${text} (${type}, n_prompt_tokens: ${n_prompt_tokens}, n_ctx: ${n_ctx})`;
    } else break;
  }
  return message || "the server answered with an error that has no message";
}

function parse(text: string): JsonObject | undefined {
  if (!text.startsWith("{")) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined; // plain text
  }
}

/** The server could not read the call that the model wrote. */
const MALFORMED_CALL = /error parsing tool call: raw='([\s\S]*)', err=/;

/**
 * Returns the call that a server's error is about, with the text that the model wrote as its arguments, so
 * that the model gets an error which it can correct. The error does not name the tool: it is the only one, or
 * the first with a property of the text. Undefined for other errors.
 */
export function malformedCall({ cause }: LLMError, tools: readonly ToolSpec[]): JsonObject | undefined {
  const [, text] = MALFORMED_CALL.exec(String(cause)) ?? []; // the whole message, see toServerError
  if (text === undefined) return undefined;
  const tool = tools.length === 1 ? tools[0] : tools.find(({ parameters }) => {
    const { properties } = parameters;
    return isObject(properties) && Object.keys(properties).some((key) => text.includes(`"${key}"`));
  });
  return tool && { function: { name: tool.name, arguments: text } };
}
