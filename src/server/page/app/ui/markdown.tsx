/**
 * Markdown as elements, made from tokens and never from HTML text. A model's HTML is shown as text, its images
 * as links: an image that loads by itself could carry data to another server.
 */
import type { ComponentChildren, VNode } from "preact";
import { useRef } from "preact/hooks";
import type { Token, Tokens } from "marked";
import { NOTHING, read } from "./markdown_tokens.ts";
import { TextBlock, visible } from "./text.tsx";

/** Levels of nested lists, quotes and emphasis; what is deeper is shown as it was written. */
const MAX_DEPTH = 30;

/** Shows text as Markdown. While it grows, only its last blocks are read and drawn again. */
export function Markdown({ text }: { text: string }) {
  const reading = useRef(NOTHING);
  const drawn = useRef(new WeakMap<Token, VNode>());
  const { tokens } = reading.current = read(text, reading.current);
  if (tokens === null) return <TextBlock text={text} label="Answer" />;
  const blockOf = (token: Token, index: number): VNode => {
    let block = drawn.current.get(token); // the same element is not compared again
    if (!block) drawn.current.set(token, block = <Block token={token} depth={1} key={index} />);
    return block;
  };
  return <div class="md">{tokens.map(blockOf)}</div>;
}

function rawOf(tokens: readonly Token[]): ComponentChildren {
  return visible(tokens.map(({ raw }) => raw).join(""));
}

function blocks(tokens: readonly Token[], depth: number): ComponentChildren {
  if (depth > MAX_DEPTH) return rawOf(tokens);
  return tokens.map((token, index) => <Block token={token} depth={depth + 1} key={index} />);
}

function Block({ token, depth }: { token: Token; depth: number }) {
  switch (token.type) {
    case "space":
    case "def":
      return null;
    case "heading":
      return <h3 dir="auto">{inline(token.tokens, depth)}</h3>; // one level: a model may begin with any
    case "code":
      return <pre dir="ltr"><code>{visible(token.text)}</code></pre>;
    case "blockquote":
      return <blockquote dir="auto">{blocks(token.tokens ?? [], depth)}</blockquote>;
    case "list": {
      const items = (token as Tokens.List).items.map((item, index) => (
        <li key={index}>
          {item.task && <span>{item.checked ? "☑ " : "☐ "}</span>}
          {blocks(item.tokens.filter(({ type }) => type !== "checkbox"), depth)}
        </li>
      ));
      return token.ordered
        ? <ol dir="auto" start={Number(token.start) || 1}>{items}</ol>
        : <ul dir="auto">{items}</ul>;
    }
    case "table":
      return <Table table={token as Tokens.Table} depth={depth} />;
    case "hr":
      return <hr />;
    case "paragraph":
      return <p dir="auto">{inline(token.tokens, depth)}</p>;
    case "text":
      return <>{token.tokens ? inline(token.tokens, depth) : visible(token.text)}</>;
    default:
      return <p>{visible(token.raw)}</p>;
  }
}

function Table({ table, depth }: { table: Tokens.Table; depth: number }) {
  const cells = (row: readonly Tokens.TableCell[], Cell: "th" | "td") =>
    row.map((cell, index) => <Cell key={index}>{inline(cell.tokens, depth)}</Cell>);
  return (
    <table dir="auto">
      <thead>
        <tr>{cells(table.header, "th")}</tr>
      </thead>
      <tbody>{table.rows.map((row, index) => <tr key={index}>{cells(row, "td")}</tr>)}</tbody>
    </table>
  );
}

function inline(tokens: readonly Token[] = [], depth: number): ComponentChildren {
  if (depth > MAX_DEPTH) return rawOf(tokens);
  return tokens.map((token, index) => <Inline token={token} depth={depth + 1} key={index} />);
}

function Inline({ token, depth }: { token: Token; depth: number }) {
  switch (token.type) {
    case "strong":
      return <strong>{inline(token.tokens, depth)}</strong>;
    case "em":
      return <em>{inline(token.tokens, depth)}</em>;
    case "del":
      return <del>{inline(token.tokens, depth)}</del>;
    case "codespan":
      return <code dir="auto">{visible(token.text)}</code>;
    case "br":
      return <br />;
    case "link":
      return <Link href={token.href}>{inline(token.tokens, depth)}</Link>;
    case "image":
      return <Link href={token.href}>{visible(`[image: ${token.text || token.href}]`)}</Link>;
    case "text":
      return <>{token.tokens ? inline(token.tokens, depth) : visible(token.text)}</>;
    case "escape":
      return <>{visible(token.text)}</>;
    default:
      return <>{visible(token.raw)}</>;
  }
}

/** A link that a model wrote: only to the web or to a mail address, and its target is shown. */
function Link({ href, children }: { href: string; children: ComponentChildren }) {
  if (!/^(https?:\/\/|mailto:)/i.test(href)) return <span>{children} ({visible(href)})</span>;
  return <a href={href} title={href} target="_blank" rel="noopener noreferrer nofollow">{children}</a>;
}
