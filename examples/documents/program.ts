<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="it_IT" sourcelanguage="en">
<context>
    <name>MainWindow</name>
    <message>
        <location filename="window.cpp" line="12"/>
        <source>&amp;Open the door</source>
        <extracomment>An entry of the menu: this comment stays.</extracomment>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>You have %n letter(s).</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>Good night!</source>
        <translation>Buona notte!</translation>
    </message>
    <message>
        <source>Dear &lt;b&gt;%1&lt;/b&gt;, where is the station?</source>
        <translation></translation>
    </message>
</context>
</TS>
