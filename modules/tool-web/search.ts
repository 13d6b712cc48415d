/** Search engines with an API: Brave and Tavily. */
import { isObject, type JsonObject } from "preamp/base";
import { WebError } from "preamp/web";
import type { HostGrant } from "./host_grant.ts";

/** One result of a search. */
export interface SearchResult {
  readonly title: string;
  readonly url: string;
  readonly text: string;
}

/** A search. */
export interface SearchRequest {
  readonly engine: keyof typeof ENGINES;
  readonly api_key: string;
  readonly base_url?: string;
  readonly query: string;
  readonly limit: number;
}

interface Engine {
  readonly base_url: string;
  /** Variable that plans usually name for the key. */
  readonly key_variable: string;
  request(base: string, search: SearchRequest): { url: URL; init: RequestInit };
  results(answer: JsonObject): unknown;
  /** Field with the extract of a page. */
  readonly text: string;
}

/** The engines by name. Sources: the API references of Brave Search and Tavily. */
export const ENGINES: Readonly<Record<"brave" | "tavily", Engine>> = {
  brave: {
    base_url: "https://api.search.brave.com/res/v1/web/search",
    key_variable: "BRAVE_API_KEY",
    request(base, { query, limit, api_key }) {
      const url = new URL(base);
      url.searchParams.set("q", query);
      url.searchParams.set("count", String(limit));
      return { url, init: { headers: { accept: "application/json", "x-subscription-token": api_key } } };
    },
    results: ({ web }) => isObject(web) ? web.results : undefined,
    text: "description",
  },
  tavily: {
    base_url: "https://api.tavily.com/search",
    key_variable: "TAVILY_API_KEY",
    request: (base, { query, limit, api_key }) => ({
      url: new URL(base),
      init: {
        method: "POST",
        headers: { "content-type": "application/json", "authorization": `Bearer ${api_key}` },
        body: JSON.stringify({ query, max_results: limit }),
      },
    }),
    results: ({ results }) => results,
    text: "content",
  },
};

/** Characters of an answer; twenty results are far smaller. */
const MAX_ANSWER_CHARS = 524_288;
const MAX_TEXT_CHARS = 1_000;

/** Resolves to the results of a search. @throws {WebError} when the engine refuses, or answers oddly. */
export async function searchWeb(
  search: SearchRequest,
  grant: HostGrant,
  signal: AbortSignal,
): Promise<SearchResult[]> {
  const engine = ENGINES[search.engine];
  const { url, init } = engine.request(search.base_url ?? engine.base_url, search);
  grant.check(url);
  // a redirect would carry the key to another host
  const response = await fetch(url, { ...init, signal, redirect: "error" });
  const text = await textOf(response);
  if (!response.ok) throw new WebError(`it answered ${response.status}: ${text.slice(0, 300)}`);
  const results = engine.results(parsed(text));
  if (!Array.isArray(results)) throw new WebError("its answer has no list of results");
  return results.filter(isObject).slice(0, search.limit).map((result) => ({
    title: plain(result.title),
    url: plain(result.url),
    text: plain(result[engine.text]),
  }));
}

async function textOf(response: Response): Promise<string> {
  let text = "";
  for await (const part of (response.body ?? new Blob().stream()).pipeThrough(new TextDecoderStream())) {
    text += part;
    if (text.length > MAX_ANSWER_CHARS) {
      throw new WebError(`its answer has more than ${MAX_ANSWER_CHARS} characters`);
    }
  }
  return text;
}

function parsed(text: string): JsonObject {
  try {
    const value: unknown = JSON.parse(text);
    if (isObject(value)) return value as JsonObject; // JSON
  } catch {
    // reported below
  }
  throw new WebError("its answer is not a JSON object");
}

/** Returns a text on one line without tags, which Brave uses to mark words. */
function plain(value: unknown): string {
  return typeof value === "string"
    ? value.replace(/<\/?strong>/g, "").replace(/\s+/g, " ").trim().slice(0, MAX_TEXT_CHARS)
    : "";
}
