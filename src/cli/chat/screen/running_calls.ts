/** The calls of tools that run, on the screen. */
import type { Component } from "@earendil-works/pi-tui";
import type { ToolCard } from "./tool_card.ts";

/** The calls that run, below the conversation: what may still change must be in the window. */
export class RunningCalls implements Component {
  readonly #mostRows: () => number;
  readonly #cards = new Map<string, ToolCard>();

  constructor(mostRows: () => number) {
    this.#mostRows = mostRows;
  }

  get(key: string): ToolCard | undefined {
    return this.#cards.get(key);
  }
  set(key: string, card: ToolCard): void {
    this.#cards.set(key, card);
  }
  delete(key: string): void {
    this.#cards.delete(key);
  }
  takeAll(): ToolCard[] {
    const cards = [...this.#cards.values()];
    this.#cards.clear();
    return cards;
  }
  newest(): ToolCard | undefined {
    return [...this.#cards.values()].findLast((card) => !card.is_waiting);
  }

  invalidate(): void {}

  render(width: number): string[] {
    const cards = [...this.#cards.values()].filter((card) => !card.is_waiting);
    const parts = cards.map((card) => card.render(width));
    const most = this.#mostRows();
    if (parts.flat().length + parts.length <= most) return parts.flatMap((lines) => ["", ...lines]);
    const rows = Math.floor(most / cards.length) - 1; // beside the head
    return parts.flatMap(([head = "", ...lines]) => [head, ...rows > 0 ? lines.slice(-rows) : []]).slice(
      -most,
    );
  }
}
