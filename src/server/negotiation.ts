/** Reading the request headers that choose: Content-Type, Accept (RFC 9110), Prefer (RFC 7240). */

/** A media type without its parameters, and the charset among them. */
export interface MediaType {
  /** Lower case, such as `application/json`; empty when the header is absent. */
  type: string;
  /** Lower case; null when none is named. */
  charset: string | null;
  /** What stands between the parts of a form; null when none is named. */
  boundary: string | null;
}

/** Returns the media type of a Content-Type header. */
export function parseMediaType(header: string | null): MediaType {
  if (header === null) return { type: "", charset: null, boundary: null };
  if (header === "application/json") return { type: header, charset: null, boundary: null };
  const [type = "", ...parameters] = splitUnquoted(header, ";");
  const values = new Map(parameters.map(parseParameter));
  return {
    type: type.trim().toLowerCase(),
    charset: values.get("charset")?.toLowerCase() ?? null,
    boundary: values.get("boundary") ?? null,
  };
}

/**
 * Returns the offered type that an Accept header likes best: highest `q`, then the one it names first. Without a header,
 * and when it names none of them, the first offered one: an answer in another form beats none.
 */
export function preferredType<Type extends string>(
  header: string | null,
  offered: readonly [Type, ...Type[]],
): Type {
  if (header === null || header === "*/*" || header === offered[0]) return offered[0];
  let best: { type: Type; quality: number } | undefined;
  for (const item of splitUnquoted(header, ",")) {
    const [range = "", ...parameters] = splitUnquoted(item, ";");
    const quality = qualityOf(parameters);
    const type = offered.find((offer) => matches(range.trim().toLowerCase(), offer));
    if (type !== undefined && quality > 0 && (!best || quality > best.quality)) best = { type, quality };
  }
  return best?.type ?? offered[0];
}

/** Returns whether an Accept-Encoding header takes a coding (RFC 9110 §12.5.3); no header takes none. */
export function acceptsEncoding(header: string | null, coding: string): boolean {
  if (header === null) return false;
  let any = false;
  for (const item of header.split(",")) {
    const [name = "", ...parameters] = item.split(";");
    const taken = qualityOf(parameters) > 0;
    if (name.trim().toLowerCase() === coding) return taken;
    if (name.trim() === "*") any = taken;
  }
  return any;
}

/** What a client prefers; {@link parsePrefer} leaves out what it does not know. */
export interface Preferences {
  /** Answer at once, 202. */
  respond_async: boolean;
  /** Wait: `true` until the end, a number of seconds, or false. */
  wait: boolean | number;
}

/** Returns the preferences of a Prefer header; unknown ones are ignored (RFC 7240 §2). */
export function parsePrefer(header: string | null): Preferences {
  const preferences: Preferences = { respond_async: false, wait: false };
  if (header === null) return preferences;
  for (const item of splitUnquoted(header, ",")) {
    const [name, value] = parseParameter(splitUnquoted(item, ";")[0] ?? "");
    if (name === "respond-async") preferences.respond_async = true;
    if (name !== "wait" || preferences.wait !== false) continue; // the first of equal preferences counts
    const seconds = value === "" ? NaN : Number(value);
    preferences.wait = Number.isSafeInteger(seconds) && seconds >= 0 ? seconds : true;
  }
  return preferences;
}

function matches(range: string, offer: string): boolean {
  if (range === offer || range === "*/*") return true;
  return range.endsWith("/*") && offer.startsWith(range.slice(0, -1));
}

function qualityOf(parameters: string[]): number {
  for (const parameter of parameters) {
    const [name, value] = parseParameter(parameter);
    if (name !== "q") continue;
    const quality = Number(value);
    return quality >= 0 && quality <= 1 ? quality : 0;
  }
  return 1;
}

/** Returns name and value of `name=value` or `name="value"`; the value is empty when there is none. */
function parseParameter(text: string): [name: string, value: string] {
  const equals = text.indexOf("=");
  if (equals === -1) return [text.trim().toLowerCase(), ""];
  const value = text.slice(equals + 1).trim();
  const bare = value.length >= 2 && value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1) : value;
  return [text.slice(0, equals).trim().toLowerCase(), bare];
}

/** Splits at a separator that stands outside of a quoted string (RFC 9110 §5.6.4). */
function splitUnquoted(text: string, separator: "," | ";"): string[] {
  if (!text.includes('"')) return text.split(separator);
  const parts: string[] = [];
  let start = 0;
  let quoted = false;
  for (let index = 0; index < text.length; index++) {
    const character = text[index];
    if (quoted && character === "\\") index++;
    else if (character === '"') quoted = !quoted;
    else if (character === separator && !quoted) {
      parts.push(text.slice(start, index));
      start = index + 1;
    }
  }
  return [...parts, text.slice(start)];
}
