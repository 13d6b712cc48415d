/** Reads answers of the Responses API, also of the servers that resemble it. */
import { isObject, type JsonObject } from "preamp/base";
import {
  argumentsText,
  type EventReader,
  objectsIn,
  readCounts,
  statesError,
  textOrNone,
} from "./event_reader.ts";

const ENDS: ReadonlySet<string> = new Set([
  "response.completed",
  "response.incomplete",
  "response.failed",
  "response.done", // of some gateways
]);
const STATUSES: ReadonlySet<unknown> = new Set(["in_progress", "completed", "incomplete"]);
const SUMMARY_DELTA = "response.reasoning_summary_text.delta";

/** Events of a part of an item, or of the arguments of a call. */
const PART = /^response\.(content_part|output_text|refusal|reasoning\w*|function_call_arguments)\./;

/** A kind of text within an item. */
interface TextKind {
  /** Field of the item that has the parts, and their type. */
  readonly list: "content" | "summary";
  readonly part_type: string;
  /** Event of its deltas. */
  readonly delta: string;
}

const TEXT_KINDS: readonly TextKind[] = [
  { list: "content", part_type: "output_text", delta: "response.output_text.delta" },
  { list: "content", part_type: "refusal", delta: "response.refusal.delta" },
  { list: "content", part_type: "reasoning_text", delta: "response.reasoning_text.delta" },
  { list: "summary", part_type: "summary_text", delta: SUMMARY_DELTA },
];

/** Fields of an item at its beginning, by its type. */
const EMPTY: Readonly<Record<string, JsonObject>> = {
  message: { content: [] },
  reasoning: { summary: [], content: [] },
  function_call: { arguments: "" },
};

/** An item that has begun. */
interface BegunItem {
  readonly id: string;
  readonly type: string;
  /** Its fields; of a call, with the arguments so far. */
  readonly fields: JsonObject;
  is_done: boolean;
}

export class ResponsesReader implements EventReader {
  ended = false;
  /** Items by their places in the output. */
  readonly #items = new Map<number, BegunItem>();
  /** Texts so far, by the event of their deltas and their place. */
  readonly #texts = new Map<string, string>();

  read(event: JsonObject): readonly JsonObject[] {
    if (statesError(event)) return this.ended ? [] : [{ sequence_number: 0, ...event }];
    const type = textOrNone(event.type);
    if (type === undefined) return Array.isArray(event.choices) ? [event] : []; // of another API: the package says so
    if (type === "response.created" || type === "response.in_progress") {
      return [{ ...event, response: responseIn(event.response, "in_progress") }];
    }
    if (ENDS.has(type)) return this.#end(type, event);
    const { item } = event;
    if (type === "response.output_item.added") {
      return isObject(item) ? this.#begin(item, event.output_index) : [];
    }
    if (type === "response.output_item.done") {
      return isObject(item) ? this.#done(item, this.#placeOf(event)) : [];
    }
    return PART.test(type) ? this.#part(type, event) : [event];
  }

  whole(answer: JsonObject): JsonObject {
    if (statesError(answer) || !Array.isArray(answer.output)) return answer;
    const output = objectsIn(answer.output).map((item, place) => itemIn(item, place, "completed"));
    return { ...responseIn(answer, "completed"), output };
  }

  /** Returns the place of the item that an event belongs to; llama.cpp does not state it. */
  #placeOf({ output_index, item_id, item }: JsonObject): number {
    if (typeof output_index === "number") return output_index;
    const id = item_id ?? (isObject(item) ? item.id : undefined);
    const [place] = [...this.#items].find(([, one]) => one.id === id) ?? [this.#items.size - 1];
    return Math.max(0, place);
  }

  #begin(item: JsonObject, output_index: unknown): JsonObject[] {
    const place = typeof output_index === "number" ? output_index : this.#items.size;
    const fields = itemIn(item, place, "in_progress");
    this.#items.set(place, { id: String(fields.id), type: String(fields.type), fields, is_done: false });
    const stated = { ...fields, ...EMPTY[String(fields.type)] }; // what is in it already arrives once more
    return [{ type: "response.output_item.added", output_index: place, item: stated }];
  }

  /** Returns the events of a finished item: also of its beginning and its texts where they did not arrive. */
  #done(item: JsonObject, place: number): JsonObject[] {
    const begun = this.#items.get(place);
    const is_new = begun?.type !== item.type;
    const begin = is_new ? this.#begin(item, place) : [];
    const { id: item_id, fields } = this.#items.get(place)!; // begun
    const read = itemIn(item, place, "completed");
    if (read.type === "function_call" && read.arguments === "") read.arguments = fields.arguments;
    this.#items.set(place, { id: item_id, type: String(read.type), fields: read, is_done: true });
    const texts = TEXT_KINDS.flatMap((kind) =>
      objectsIn(read[kind.list]).flatMap((part, index) =>
        this.#missing(kind, part, { item_id, place, index })
      )
    );
    return [...begin, ...texts, { type: "response.output_item.done", output_index: place, item: read }];
  }

  /** Returns the events of the text of a part that did not arrive in deltas; none where all of it did. */
  #missing(
    { part_type, delta: type }: TextKind,
    part: JsonObject,
    { item_id, place, index }: { item_id: string; place: number; index: number },
  ): JsonObject[] {
    const whole = part.type === part_type ? part.text ?? part.refusal : undefined;
    const key = keyOf(type, place, index);
    const so_far = this.#texts.get(key);
    if (typeof whole !== "string" || whole === so_far || !whole.startsWith(so_far ?? "")) return [];
    this.#texts.set(key, whole);
    const is_summary = type === SUMMARY_DELTA;
    const at = { item_id, output_index: place, [is_summary ? "summary_index" : "content_index"]: index };
    const begin = is_summary && so_far === undefined
      ? [{ type: "response.reasoning_summary_part.added", ...at, part: { type: part_type, text: "" } }]
      : [];
    return [...begin, { type, ...at, delta: whole.slice((so_far ?? "").length) }];
  }

  /** Returns the events of a part of an item. */
  #part(type: string, event: JsonObject): JsonObject[] {
    const place = this.#placeOf(event);
    const item = this.#items.get(place);
    const item_id = textOrNone(event.item_id) ?? item?.id ?? `item_${place}`;
    const [content_index, summary_index] = [event.content_index, event.summary_index].map((index) =>
      typeof index === "number" ? index : 0
    ) as [number, number];
    const { logprobs: _, ...fields } = event;
    const same = { ...fields, item_id, output_index: place, content_index, summary_index };
    if (type.startsWith("response.function_call_arguments.")) {
      const text = argumentsText(event.delta ?? event.arguments);
      if (item) item.fields.arguments = event.delta === undefined ? text : `${item.fields.arguments}${text}`;
      return event.delta === undefined ? [] : [{ ...same, delta: text }]; // the finished item repeats all of it
    }
    if (type === "response.output_text.annotation.added") {
      return annotationsIn([event.annotation]).map((annotation) => ({
        annotation_index: 0,
        ...same,
        annotation,
      }));
    }
    const index = type.includes("summary") ? summary_index : content_index;
    const kind = TEXT_KINDS.find(({ delta, part_type }) =>
      isObject(event.part) ? event.part.type === part_type : delta.slice(0, -6) === type.replace(/\.\w+$/, "")
    );
    if (!kind) return [same];
    const key = keyOf(kind.delta, place, index);
    if (type === kind.delta) {
      if (typeof event.delta !== "string") return [];
      this.#texts.set(key, `${this.#texts.get(key) ?? ""}${event.delta}`);
    } else if (type.endsWith(".done")) {
      const part = isObject(event.part) ? event.part : { ...event, type: kind.part_type };
      return [...this.#missing(kind, part, { item_id, place, index }), same];
    } else if (type.endsWith("_part.added")) this.#texts.set(key, this.#texts.get(key) ?? "");
    return [same];
  }

  /** Returns the end, after what arrived with it only, and the calls that did not end. */
  #end(stated: string, event: JsonObject): JsonObject[] {
    this.ended = true;
    const response = isObject(event.response) ? event.response : {};
    const known = [...this.#items.values()];
    const hasText = (type: string) =>
      [...this.#texts].some(([key, text]) => text !== "" && key.startsWith(type));
    const has: Readonly<Record<string, boolean>> = {
      message: hasText("response.output_text.") || hasText("response.refusal."),
      reasoning: hasText("response.reasoning") || known.some(({ type }) => type === "reasoning"),
    };
    const missing = objectsIn(response.output).filter(({ type, id, call_id }) =>
      type === "function_call"
        ? !known.some(({ fields }) => fields.call_id === (call_id ?? id))
        : has[String(type)] === false
    );
    const open = [...this.#items].filter(([, { type, is_done }]) => type === "function_call" && !is_done);
    const place = Math.max(-1, ...this.#items.keys()) + 1;
    const type = stated === "response.done"
      ? `response.${textOrNone(response.status) ?? "completed"}`
      : stated;
    const whole = { ...responseIn(response, type.slice("response.".length)), output: [] };
    return [
      ...open.flatMap(([place, { fields }]) => {
        const answered = objectsIn(response.output).find(({ call_id }) => call_id === fields.call_id);
        return this.#done(answered ?? fields, place);
      }),
      ...missing.flatMap((item, index) => this.#done(item, place + index)),
      { sequence_number: 0, ...event, type, response: whole },
    ];
  }
}

function keyOf(type: string, place: number, index: number): string {
  return `${type} ${place} ${index}`;
}

/** Returns the fields of a response that the packages read. */
function responseIn(value: unknown, status: string): JsonObject {
  const response = isObject(value) ? value : {};
  const { id, model, created_at, usage, incomplete_details: details, error, service_tier } = response;
  const read = readCounts(usage, ["input_tokens", "output_tokens"]);
  return {
    id: textOrNone(id) ?? "",
    model: textOrNone(model) ?? "",
    created_at: typeof created_at === "number" ? created_at : 0,
    object: "response",
    status: textOrNone(response.status) ?? status,
    output: [],
    ...(read ? { usage: read } : {}),
    ...(isObject(details) && typeof details.reason === "string" ? { incomplete_details: details } : {}),
    ...(isObject(error) ? { error } : {}),
    ...(typeof service_tier === "string" ? { service_tier } : {}),
  };
}

/** Returns an item with the fields that the packages want. */
function itemIn(item: JsonObject, place: number, status: string): JsonObject {
  const { type, id, call_id, phase, ...fields } = item;
  const known_status = STATUSES.has(item.status) ? item.status : status;
  switch (type) {
    case "message":
      return {
        ...fields,
        type,
        id: textOrNone(id) ?? `msg_${place}`,
        role: "assistant",
        status: known_status,
        content: objectsIn(item.content).flatMap(partIn),
        ...(phase === "commentary" || phase === "final_answer" ? { phase } : {}),
      };
    case "function_call": {
      const own_id = textOrNone(call_id) ?? textOrNone(id) ?? `call_${place}`;
      return {
        ...fields,
        type,
        id: textOrNone(id) ?? own_id,
        call_id: own_id,
        name: textOrNone(item.name) ?? "",
        arguments: argumentsText(item.arguments),
        status: known_status,
      };
    }
    case "reasoning": {
      const { encrypted_content, content, summary } = item;
      const [summaries, texts] = [summary, content].map((list) =>
        objectsIn(list).filter((part) => typeof part.text === "string")
      ) as [JsonObject[], JsonObject[]];
      return {
        type,
        id: textOrNone(id) ?? `rs_${place}`,
        status: known_status,
        summary: summaries,
        ...(texts.length > 0 ? { content: texts } : {}),
        ...(typeof encrypted_content === "string" ? { encrypted_content } : {}),
      };
    }
    default:
      return item;
  }
}

/** Returns a part of a message: a text or a refusal. */
function partIn({ type, text, refusal, annotations }: JsonObject): JsonObject[] {
  if (type === "refusal") return typeof refusal === "string" ? [{ type, refusal }] : [];
  return typeof text === "string"
    ? [{ type: "output_text", text, annotations: annotationsIn(annotations) }]
    : [];
}

/** Returns the annotations that the packages read, of addresses also without their places in the text. */
function annotationsIn(value: unknown): JsonObject[] {
  return objectsIn(value).flatMap((annotation): JsonObject[] => {
    const { type, url, title, file_id, filename, index, start_index, end_index } = annotation;
    const start = typeof start_index === "number" ? start_index : 0;
    const places = { start_index: start, end_index: typeof end_index === "number" ? end_index : start };
    if (type === "url_citation") {
      return typeof url === "string" ? [{ ...annotation, ...places, title: textOrNone(title) ?? url }] : [];
    }
    if (typeof file_id !== "string") return [];
    const names = { filename: textOrNone(filename) ?? file_id, index: typeof index === "number" ? index : 0 };
    if (type === "file_citation" || type === "file_path") return [{ ...annotation, ...names }];
    const is_of_container = type === "container_file_citation" && typeof annotation.container_id === "string";
    return is_of_container ? [{ ...annotation, ...places, ...names }] : [];
  });
}
