/** What floats over the editor: the list of suggestions at the cursor, what a key means at the pointer. */
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { visible } from "../ui/text.tsx";
import type { Help, Suggestions } from "./assist.ts";

/** Where the lines are: those behind the text area, whose parts have their texts as `data-text`. */
const LINES = ".editor > .lines";
/** Pixels that stay free at the edges of the window. */
const MARGIN = 8;

/** What of a part of a line is used here: Deno's types know no DOM. */
interface Part {
  readonly element: HTMLElement;
  readonly text: string;
  /** Offset of the part in the plan. */
  readonly from: number;
}

/** Yields the parts of a line. `from` is the offset of the line. */
function* partsOf(line: Element | undefined, from: number): Generator<Part> {
  for (const element of line?.querySelectorAll<HTMLElement>(".copy") ?? []) {
    const { text = "" } = element.dataset;
    yield { element, text, from };
    from += text.length;
  }
}

/** Returns the offset in the plan of the key or value at a point of the window; null for none. */
export function offsetAt(text: string, x: number, y: number): number | null {
  const under = document.elementsFromPoint(x, y).find((element) =>
    element.matches(`${LINES} .copy[class*=" "]`)
  );
  const line = under?.parentElement;
  if (!line) return null;
  const number = [...line.parentElement!.children].indexOf(line);
  const from = text.split("\n", number).reduce((sum, { length }) => sum + length + 1, 0);
  return partsOf(line, from).find(({ element }) => element === under)?.from ?? null;
}

/** Returns where a place of a line is in the window. */
function rectAt(line: number, column: number): { x: number; top: number; bottom: number } | null {
  const parts = partsOf(document.querySelector(LINES)?.children[line - 1], 0);
  const part = parts.find(({ text, from }) => column <= from + text.length);
  const rect = part?.element.getClientRects()[0];
  if (!part || !rect) return null;
  const share = (column - part.from) / part.text.length;
  return { x: rect.left + rect.width * share, top: rect.top, bottom: rect.bottom };
}

/** Returns whether a place of a line is in view in the box that scrolls. */
export function isInView(box: Element, line: number, column: number): boolean {
  const place = rectAt(line, column);
  const { top, bottom } = box.getBoundingClientRect();
  return place !== null && place.bottom > top && place.top < bottom;
}

/** Something below a place of the editor, or above it where there is more room. */
export function Floating({ line, column, children }: {
  line: number;
  /** From 0. */
  column: number;
  children: ComponentChildren;
}) {
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const { current: element } = box;
    const place = rectAt(line, column);
    if (!element || !place) return;
    const { width, height } = element.getBoundingClientRect();
    const { clientWidth, clientHeight } = document.documentElement;
    const is_below = place.bottom + height + MARGIN <= clientHeight ||
      place.top < clientHeight - place.bottom;
    element.style.setProperty(
      "--x",
      `${Math.max(MARGIN, Math.min(place.x, clientWidth - width - MARGIN))}px`,
    );
    element.style.setProperty("--y", `${is_below ? place.bottom + 2 : place.top - height - 2}px`);
  });
  return <div class="floating" ref={box}>{children}</div>;
}

/** The list of what may be written. */
export function SuggestionList({ items, active, onTake }: {
  items: Suggestions["items"];
  active: number;
  onTake: (index: number) => void;
}) {
  const list = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => list.current?.children[active]?.scrollIntoView({ block: "nearest" }), [active]);
  return (
    <div id="plan-suggestions" class="found" role="listbox" aria-label="Suggestions" tabIndex={-1} ref={list}>
      {items.map(({ label, description }, index) => (
        <div
          id={`plan-suggestion-${index}`}
          role="option"
          aria-selected={index === active}
          onPointerDown={(event) => event.preventDefault()} // the editor keeps the focus
          onClick={() =>
            onTake(index)}
          key={label}
        >
          <code>{visible(label)}</code> <span class="muted">{visible(description)}</span>
        </div>
      ))}
    </div>
  );
}

/** What a key or a value means. */
export function HelpText({ help: { name, type, default: by_default, description } }: { help: Help }) {
  return (
    <>
      <code>{visible(name)}</code> {type !== "" && <span class="muted">{visible(type)}</span>}{" "}
      {by_default !== undefined && <span class="muted">default {visible(by_default)}</span>}{" "}
      {description !== "" && <span>{visible(description)}</span>}
    </>
  );
}
