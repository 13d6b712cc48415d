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
 * Forms of vendors' messages; `N` is a count. The first that matches is used. `names` are the meanings of its
 * counts: `total` is `requested` with the tokens of the answer (`output`), `window` is `limit` with them.
 */
const FORMS: readonly (readonly [form: RegExp, names: readonly Meaning[]])[] = [
  // Anthropic
  form("N tokens > N maximum", "requested", "limit"),
  form("context limit: N \\+ N > N", "requested", "output", "window"),
  // OpenAI Chat Completions and compatible servers: with the tokens of the answer, then without
  form(
    "context length is N tokens.{1,40}requested N tokens.{0,80}?N in the (?:completion|output)",
    "window",
    "total",
    "output",
  ),
  form(
    "context length is N tokens.{1,40}requested N tokens.{0,80}?; N for the completion",
    "window",
    "total",
    "output",
  ),
  form(
    "context length is N tokens.{1,40}requested N output tokens.{1,40}contains N input tokens",
    "window",
    "output",
    "requested",
  ),
  form(
    "context length is N tokens.{1,60}(?:resulted in|has|contains|requested) N (?:input )?tokens",
    "limit",
    "requested",
  ),
  form(
    "passed N input tokens and requested N output tokens.{1,60}context length is only N",
    "requested",
    "output",
    "window",
  ),
  form("Limit N, Requested N", "limit", "requested"),
  // Gemini
  form("token count N exceeds the maximum number of tokens allowed N", "requested", "limit"),
  // Ollama and llama.cpp
  form("request N tokens\\)? exceeds the available context size N", "requested", "limit"),
  form('n_prompt_tokens"?[:=] ?N.{1,20}n_ctx"?[:=] ?N', "requested", "limit"),
  // xAI, Mistral, Cohere
  form("maximum prompt length is N but the request contains N", "limit", "requested"),
  form("contains N tokens.{1,60}(?:model with|length of) N", "requested", "limit"),
  form("cannot exceed N ?- ?received N", "limit", "requested"),
  // any other: the limit alone
  form(
    "(?:context (?:length|window|size|limit)|maximum (?:input|prompt|number of tokens))[^\\d]{0,30}N",
    "limit",
  ),
];

type Meaning = "limit" | "window" | "requested" | "total" | "output";

function form(text: string, ...names: Meaning[]): readonly [RegExp, readonly Meaning[]] {
  return [new RegExp(text.replaceAll("N", COUNT), "is"), names];
}

/** Maximum characters of a message that are read; a vendor's message may contain the whole request. */
const MAX_MESSAGE = 4096;

/** Returns the numbers that a provider's message states. */
export function readOverflow(message: string): ContextOverflow {
  const text = message.slice(0, MAX_MESSAGE);
  for (const [pattern, names] of FORMS) {
    const found = pattern.exec(text);
    if (!found) continue;
    const counts = Object.fromEntries(names.map((name, index) => [name, countOf(found[index + 1])]));
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
