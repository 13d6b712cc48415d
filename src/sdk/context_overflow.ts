/** Reads from vendors' messages how many tokens a refused request had, and how many the model takes. */

/** The numbers of a request that a provider refused as too long; null where it does not state them. */
export interface ContextOverflow {
  /**
   * Maximum input tokens of such a request, tools included; without the tokens that are kept for its answer.
   */
  limit_tokens: number | null;
  /** Input tokens of the refused request, tools included, as the provider counts them. */
  requested_tokens: number | null;
}

const COUNT = "\\(?(?:about |at least )?(\\d[\\d,_]*)\\)?";

/**
 * Meaning of a count: `total` is `requested` with the tokens of the answer (`output`), `window` is `limit`
 * with them.
 */
type Meaning = "limit" | "window" | "requested" | "total" | "output";

/** Forms of vendors' messages, and the meanings of their counts (`N`). The first that matches is used. */
const FORMS = ([
  // Anthropic
  ["N tokens > N maximum", ["requested", "limit"]],
  ["context limit: N \\+ N > N", ["requested", "output", "window"]],
  // OpenAI Chat Completions and compatible servers: with the tokens of the answer, then without
  [
    "context length is N tokens.{1,40}requested N tokens.{0,80}?N in the (?:completion|output)",
    ["window", "total", "output"],
  ],
  [
    "context length is N tokens.{1,40}requested N tokens.{0,80}?; N for the completion",
    ["window", "total", "output"],
  ],
  [
    "context length is N tokens.{1,40}requested N output tokens.{1,40}contains N input tokens",
    ["window", "output", "requested"],
  ],
  [
    "context length is N tokens.{1,60}(?:resulted in|has|contains|requested) N (?:input )?tokens",
    ["limit", "requested"],
  ],
  [
    "passed N input tokens and requested N output tokens.{1,60}context length is only N",
    ["requested", "output", "window"],
  ],
  ["Limit N, Requested N", ["limit", "requested"]],
  // Gemini
  ["token count N exceeds the maximum number of tokens allowed N", ["requested", "limit"]],
  // Ollama and llama.cpp
  ["request N tokens\\)? exceeds the available context size N", ["requested", "limit"]],
  ['n_prompt_tokens"?[:=] ?N.{1,20}n_ctx"?[:=] ?N', ["requested", "limit"]],
  // xAI, Mistral, Cohere
  ["maximum prompt length is N but the request contains N", ["limit", "requested"]],
  ["contains N tokens.{1,60}(?:model with|length of) N", ["requested", "limit"]],
  ["cannot exceed N ?- ?received N", ["limit", "requested"]],
  // any other: the limit alone
  [
    "(?:context (?:length|window|size|limit)|maximum (?:input|prompt|number of tokens))[^\\d]{0,30}N",
    ["limit"],
  ],
] satisfies [form: string, meanings: Meaning[]][]).map(([form, meanings]) => ({
  pattern: new RegExp(form.replaceAll("N", COUNT), "is"),
  meanings,
}));

/** Maximum characters of a message that are read; a vendor's message may contain the whole request. */
const MAX_MESSAGE = 4096;

/** Returns the numbers that a provider's message states. */
export function readOverflow(message: string): ContextOverflow {
  const text = message.slice(0, MAX_MESSAGE);
  for (const { pattern, meanings } of FORMS) {
    const found = pattern.exec(text);
    if (!found) continue;
    const counts = Object.fromEntries(meanings.map((name, index) => [name, countOf(found[index + 1])]));
    const { limit, window, requested, total, output = 0 } = counts as Partial<Record<Meaning, number>>;
    return {
      limit_tokens: positive(limit ?? (window === undefined ? undefined : window - output)),
      requested_tokens: positive(requested ?? (total === undefined ? undefined : total - output)),
    };
  }
  return { limit_tokens: null, requested_tokens: null };
}

function countOf(text: string | undefined): number {
  return Number(text?.replace(/[,_]/g, ""));
}

function positive(count: number | undefined): number | null {
  return count !== undefined && Number.isSafeInteger(count) && count > 0 ? count : null;
}
