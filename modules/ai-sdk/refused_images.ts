/**
 * Images that a server refuses: a sentence is in their place when the request is sent again, and in later
 * ones, so that one image does not make every further request of the session fail. The patterns are words of
 * the servers that are named beside them.
 */
import type { CallSettings, Degradations, MediaPart, TextPart, ToolResultPart } from "preamp/provider";

/** The model takes no images. */
const NO_IMAGES: readonly RegExp[] = [
  /unknown variant .{0,3}image_url/i, // DeepSeek
  /(?:\bnot|n't) (?:currently )?support(?:ed)? (?:\w+ ){0,3}(?:image|vision|multi-?modal)/i, // Ollama, xAI
  // OpenAI, llama.cpp, Mistral
  /\b(?:image|image_url|vision|multi-?modal)(?: \w+){0,2} (?:is|are) (?:only|not) (?:supported|enabled|available)/i,
  /\bsupport image input/i, // OpenRouter: no endpoints found that do
  /\bnot a (?:multi-?modal|vision)/i, // vLLM
  /\bat most 0 images?/i, // vLLM
  /missing data required for image input/i, // Ollama
  /content.{0,20}must be a string/i, // Groq
];

/** There are too many of them, or the request is too large with them. */
const TOO_MANY =
  /too many images|at most \d+ images|(?:number|limit) of (?:\d+ )?images|many-image|request.{0,30}(?:too large|exceeds)/i;

/** One of them is too large, broken, or has another format. */
const BAD_IMAGE: readonly RegExp[] = [
  /(?:\bnot|n't|failed to|unable to) (?:process|decode|load|read|parse|open) (?:\w+ ){0,3}image/i,
  /\bimage\b.{0,80}\b(?:exceeds?|too (?:large|big|small)|invalid|corrupt\w*|malformed|unsupported|does not match)/i,
  /\b(?:invalid|corrupt\w*|malformed|unsupported) (?:\w+ ){0,2}image/i,
  /\bdimensions? .{0,40}exceed/i, // Anthropic
];

/** What a server said. */
interface Stated {
  readonly status: number;
  readonly text: string;
}

type UserTurn = Extract<CallSettings["conversation"]["turns"][number], { role: "user" }>;

/** The images that servers refused in one session. */
export class RefusedImages {
  /** Models that take none. */
  readonly #models = new Set<string>();
  readonly #text_models: RegExp | undefined;
  /** Contents or addresses. */
  readonly #images = new Set<string>();

  /** @param text_models Ids of models that are known to take none. */
  constructor(text_models?: RegExp) {
    this.#text_models = text_models;
  }

  /** Notes that a model takes no images. */
  addModel(model: string): void {
    this.#models.add(model);
  }

  /** Returns a call with a sentence in the place of each refused image. */
  without(call: CallSettings, degradations: Degradations): CallSettings {
    const { conversation, model } = call;
    const takes_none = this.#models.has(model) || this.#text_models?.test(model) === true;
    if (!takes_none && this.#images.size === 0 || !hasImages(call)) return call;
    const reason = takes_none ? `${model} takes no images` : "the server refused it";
    const change = <Part extends { readonly type: string }>(
      part: Part | MediaPart,
    ): Part | TextPart | MediaPart => {
      if (!isImage(part) || !takes_none && !this.#images.has(keyOf(part))) return part;
      const { name, media_type = "" } = part;
      const text = degradations.addUnreadable(`image ${name ?? media_type}`.trim(), reason);
      return { type: "text", text, ...(part.cache ? { cache: part.cache } : {}) };
    };
    const changeResult = (part: ToolResultPart): ToolResultPart =>
      typeof part.content === "string" ? part : { ...part, content: part.content.map(change) };
    const turns = conversation.turns.map((turn) =>
      turn.role === "assistant" ? turn : {
        ...turn,
        parts: turn.parts.map((part) => part.type === "tool_result" ? changeResult(part) : change(part)),
      }
    );
    return { ...call, conversation: { ...conversation, turns } };
  }

  /**
   * Notes what a server refused of a call; returns whether it was about its images, and `without` now returns
   * another call. What was sent before has been accepted: the images of the last turn are refused first, but
   * where there are too many, the earlier ones.
   */
  learn({ status, text }: Stated, call: CallSettings): boolean {
    if (this.#models.has(call.model) || !hasImages(call)) return false;
    const is_request = status === 400 || status === 404 || status === 415 || status === 422 || status >= 500;
    if (is_request && NO_IMAGES.some((pattern) => pattern.test(text))) {
      this.#models.add(call.model);
      return true;
    }
    const too_many = status === 413 || status === 400 && TOO_MANY.test(text);
    const is_bad = (status === 400 || status === 422) && BAD_IMAGE.some((pattern) => pattern.test(text));
    if (!too_many && !is_bad) return false;
    const turns = call.conversation.turns.filter((turn) => turn.role === "user");
    const [earlier, last] = [turns.slice(0, -1).flatMap(imagesIn), turns.slice(-1).flatMap(imagesIn)];
    const known = this.#images.size;
    for (const images of too_many ? [earlier, last] : [last, earlier]) {
      for (const image of images) this.#images.add(keyOf(image));
      if (this.#images.size > known) return true;
    }
    return false;
  }
}

/** Returns whether a call has images. */
export function hasImages({ conversation: { turns } }: CallSettings): boolean {
  return turns.some((turn) => turn.role === "user" && imagesIn(turn).length > 0);
}

function imagesIn({ parts }: UserTurn): MediaPart[] {
  return parts.flatMap((part) =>
    part.type !== "tool_result" ? part : typeof part.content === "string" ? [] : part.content
  ).filter(isImage);
}

function isImage(part: { readonly type: string }): part is MediaPart {
  return part.type === "image";
}

function keyOf({ data, url, file_id = "" }: MediaPart): string {
  return data ?? url ?? file_id;
}
