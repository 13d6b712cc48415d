/** Text that a model or a tool wrote: hostile, possibly huge. It is only ever shown as text. */
import type { ComponentChildren, VNode } from "preact";
import { useState } from "preact/hooks";
import { Button } from "./button.tsx";
import { codeOf, CONTROLS } from "./controls.ts";

/** Characters that are shown at first. */
const SHOWN = 20_000;
/** Characters that "more" adds: what a browser lays out in one go without a pause that one feels. */
const MORE = 400_000;

/** Control characters of a text that are marked; the codes of further ones are plain text, for speed. */
const MARKED = 1_000;

/** Returns text with a visible mark for each control character. */
export function visible(text: string): ComponentChildren {
  if (text.search(CONTROLS) < 0) return text;
  const parts: (string | VNode)[] = [];
  let at = 0;
  for (const { 0: character, index } of text.matchAll(CONTROLS)) {
    parts.push(text.slice(at, index), <span class="control" key={index}>{codeOf(character)}</span>);
    at = index + character.length;
    if (parts.length >= 2 * MARKED) break;
  }
  parts.push(text.slice(at).replace(CONTROLS, codeOf));
  return parts;
}

/** A block of text in a fixed font; a long one is cut, with a button for more. */
export function TextBlock({ text, label, diff = false }: { text: string; label: string; diff?: boolean }) {
  const [shown, setShown] = useState(SHOWN);
  const part = text.length > shown ? text.slice(0, shown) : text;
  return (
    <div class="block" role="group" aria-label={label} tabIndex={0}>
      {diff ? <Diff text={part} /> : <pre dir="auto">{visible(part)}</pre>}
      {text.length > shown && (
        <Button onClick={() => setShown(shown + MORE)}>
          Show more ({sizeOf(text.length - shown)} left)
        </Button>
      )}
    </div>
  );
}

/** A unified diff, its lines marked by sign and colour. */
function Diff({ text }: { text: string }) {
  return (
    <code class="diff">
      {text.split("\n").map((line, index) => <span class={lineClass(line)} key={index}>{visible(line)}
      </span>)}
    </code>
  );
}

function lineClass(line: string): string | undefined {
  if (/^(\+\+\+|---|@@|diff |index )/.test(line)) return "hunk";
  return line.startsWith("+") ? "plus" : line.startsWith("-") ? "minus" : undefined;
}

/** Returns whether text looks like a unified diff. */
export function isDiff(text: string): boolean {
  return /^(@@ .* @@|--- )/m.test(text.slice(0, 4_000)) && /^[+-]/m.test(text);
}

/** Returns any value as text: a string as it is, anything else as JSON. */
export function asText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2) ?? "";
}

/** Returns a number of characters or bytes with its unit. */
export function sizeOf(count: number): string {
  return count < 1_000
    ? `${count} B`
    : count < 1e6
    ? `${(count / 1e3).toFixed(1)} kB`
    : `${(count / 1e6).toFixed(1)} MB`;
}
