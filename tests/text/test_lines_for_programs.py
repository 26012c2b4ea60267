"""Lines of program code, and of the head of a mail or of HTTP: they stay, and no sentence counts as one."""

import time

import pytest

from transformer_cli.text.lines_for_programs import part_for_programs
from transformer_cli.text.spans import find_spans, has_span_sign, span_texts

CODE = """\
using System;
global using System.Text.Json;
import java.util.List;
package org.example.dogs;
use std::collections::HashMap;
namespace Dogs.Red;
var x = await OpenAsync("a.txt");
int count = dogs.size();
private readonly ILogger<Dog> _logger;
private final String name;
unsigned int num_dogs;
const dogs = require("dogs");
return dogs[0].name;
return null;
throw new DogException("The dog is red");
print_dog(house, 3);
this.dogs.add(dog);
dogs.forEach(dog => dog.bark());
.WithName("dog");
i++;
});
public class Foo {
public static void main(String[] args) {
class Dog extends Animal {
if (dog == null) {
} else {
} catch (DogException e) {
for (int i = 0; i < 10; i++) {
while (true) {
fn main() {
func bark(w io.Writer) error {
let dog = Dog {
const bark = (dog) => {
.red-dog > .house {
struct dog {
def bark(self, house: House) -> None:
class RedDog(Dog):
if dog is None:
for dog in self.dogs():
with open("dogs.txt") as file:
except ValueError as error:
else:
from dogs.red import Dog, House
return house.dogs()
self.dogs = []
dogs = load("dogs.txt")
dog, house := find(ctx)
import { Dog } from "./dog";
export default function Dog(props)
export const DOG = "red"
$dog->name = "Tom"
my $dog = shift;
#include <stdio.h>
#define NUM_DOGS 3
#ifdef WIN32
@Test(expected = DogException.class)
[Fact(Skip = "slow")]
#[derive(Debug)]
name : "areas",
"count": 3,
$ sudo apt install x
$ cd dogs
git commit -m "The dog is red."
pip install -r dogs.txt
cd /tmp/dogs && make install
#!/bin/bash
if [ -f "$dog" ]; then
SELECT name FROM dogs WHERE id = 3;
CREATE TABLE dogs (id INT);
console.log("The dog is red.")
"""

PROSE = """\
Call foo(bar); then the dog is red.
Use print(x) to see the dog;
The house (with the dog);
the dog and the cat;
return to the house;
break free;
Using the house, we slept;
Import the data; then export it.
The class of the dog:
for example in Rome:
if you like dogs (and cats):
If the dog is red:
Dog = a big animal (red)
dog = chien
E = mc2
The dog is {n} {m}
{count, plural, one {# dog} other {# dogs}}
Select the dogs from the house.
Update dogs
Delete file(s)
file(s)
my dog file(s)
Save (as)
dogs (red)
git is a tool.
Run git commit -m "dog" first.
Make a house
Find the dog
$ 5 for a dog
$ is a sign of money
The dog is red (see below).
"The dog is red," he said;
He said: "Come home"
Tom: "Yes,"
@tom look at the dog
#dogs are here
import dogs
from Rome
While (as he said) we slept
Note: dogs; cats; houses.
dogs & cats
(the dogs and the cats);
Where is the dog? / Here;
I saw "the dog";
- dogs, cats: red
1) the dog; 2) the cat;
try again:
catch the dog;
public houses and private houses;
static noise;
new house;
level=info msg="The dog is red" status=200
a new dog (red);
Default: red
"""

HEADS = """\
X-Mailer: Thunderbird
Message-ID: <abc@example.com>
MIME-Version: 1.0
Content-Type: text/plain; charset=utf-8
Content-Disposition: attachment; filename="dog.txt"
Date: Mon, 3 Jun 2024 10:00:00 +0200
From: Anna Miller <anna@example.com>
To: tom@example.com, "Red Dog" <dog@example.com>
Cc: "CC Recipient" <cc@example.com>
Reply-To: dogs@example.com
HTTP/1.1 200 OK
GET /index.html HTTP/1.1
Host: example.com
Accept: text/html,application/json
Accept-Language: en-US,en;q=0.5
Cache-Control: no-cache
Connection: keep-alive
Content-Length: 120
User-Agent: Mozilla/5.0 (X11; Linux x86_64)
Set-Cookie: dog=red; Path=/
Location: https://example.org/dogs
"""

TEXTS_LIKE_HEADS = """\
From: the red house
To: my dog
Date: Monday
Host: the man of the house
Accept: the terms are these
Connection: the house is near
Content-Type: the kind of a file
Cache-Control: how long a dog stays in the house
Location: Rome
Server: a dog
Subject:
Subject: {name}
Received: a letter from the dog
"""


@pytest.mark.parametrize("line", [*CODE.splitlines(), *HEADS.splitlines()])
def test_a_line_for_programs_is_one_span(line: str) -> None:
    for text in (line, f"  {line}"):
        if any(map(str.isalpha, line)):
            assert has_span_sign(text)
            assert span_texts(text, find_spans(text)) == [line]


@pytest.mark.parametrize("line", [*PROSE.splitlines(), *TEXTS_LIKE_HEADS.splitlines()])
def test_a_text_is_no_line_for_programs(line: str) -> None:
    assert part_for_programs(line) is None


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("Subject: The red house", "Subject"),
        ("Subject: Re: the dogs of {x", None),
        ("Subject: Re: Dogs", "Subject: Re"),
    ],
)
def test_the_name_of_a_subject_stays_and_its_words_are_text(line: str, name: str | None) -> None:
    part = part_for_programs(line)
    assert (part and line[part.start : part.end]) == name


@pytest.mark.parametrize("unit", ["a.", "a, ", "public ", "a<", "'-a ", "&{", "->{a}", "x[1]", "A "])
@pytest.mark.parametrize("head", ["", "const ", "if (", "Accept: "])
def test_no_line_takes_long(head: str, unit: str) -> None:
    begun = time.perf_counter()
    for end in (";", "{", ":", ")", ""):
        part_for_programs(f"{head}{unit * 400}"[:399] + end)
    assert time.perf_counter() - begun < 1
